package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden tables anew")

func TestTables(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no input: %v", err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			var got bytes.Buffer
			if err := run(&got, []string{input}, 1); err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(input, ".txt") + ".md"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("tables are\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		input string
		min   int
		want  string
	}{
		"nothing":     {"PASS\n", 1, "no benchmark"},
		"failed":      {"BenchmarkX-2 1 5 ns/op\n--- FAIL: BenchmarkY\n", 1, "failed"},
		"few rounds":  {"BenchmarkX-2 1 5 ns/op\n", 10, "has 1 rounds, not 10"},
		"not a value": {"BenchmarkX-2 1 five ns/op\n", 1, "invalid syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "input")
			if err := os.WriteFile(file, []byte(test.input), 0o666); err != nil {
				t.Fatal(err)
			}
			err := run(new(bytes.Buffer), []string{file}, test.min)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

// A ratio is taken within a round: here every round's is 2, though the machine
// was three times slower in the second.
func TestRatioWithinRound(t *testing.T) {
	r := newResults()
	err := r.read(strings.NewReader(`
BenchmarkLatency/server=std/client=std-2 1 100 ns/op
BenchmarkLatency/server=ossl/client=ossl-2 1 200 ns/op
BenchmarkLatency/server=std/client=std-2 1 300 ns/op
BenchmarkLatency/server=ossl/client=ossl-2 1 600 ns/op
`))
	if err != nil {
		t.Fatal(err)
	}
	n := name("Latency/server=ossl/client=ossl")
	if got := r.ratio(n, n.std(), "ns/op"); len(got) != 2 || got[0] != 2 || got[1] != 2 {
		t.Errorf("ratios are %v", got)
	}
}

func TestGeneration(t *testing.T) {
	for version, want := range map[string]int{
		"1.1.1w": -1, "3.0.19": 0, "3.2.1": -1, "3.4.0": -1, "3.5.7": 1, "3.6.0": 1, "4.0.0": 1, "": -1, "3.0.19 and 3.5.7": 0,
	} {
		if got := generation(version); got != want {
			t.Errorf("generation(%q) = %d, want %d", version, got, want)
		}
	}
}
