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
			if err := run(&got, []string{input}, 1, strings.Contains(input, "adapters")); err != nil {
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
		"floor of another library": {
			"libssl: 3.5.7\nBenchmarkHandshake/server=std/client=std-2 1 5 ns/op\n" +
				"libssl: 3.0.19\nBenchmarkHandshake/server=c/client=c-2 1 5 ns/op\n", 1, "3.5.7 or 3.0.19",
		},
		"floor of other rounds": {
			"BenchmarkLatency/server=std/client=std-2 1 5 ns/op\nBenchmarkLatency/server=std/client=std-2 1 5 ns/op\n" +
				"BenchmarkLatency/server=tcp/client=tcp-2 1 5 ns/op\n", 1, "1 rounds, and Latency/server=std/client=std 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "input")
			if err := os.WriteFile(file, []byte(test.input), 0o666); err != nil {
				t.Fatal(err)
			}
			err := run(new(bytes.Buffer), []string{file}, test.min, false)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

// The parts that the floor lacks must not be the ones that the row measures.
func TestFloorOfOthers(t *testing.T) {
	r := newResults()
	err := r.read(strings.NewReader(`
BenchmarkHandshake/server=std/client=std/mutual=false/chaincache=off-2 1 100 ns/op 60 client-ns/op
BenchmarkHandshake/server=c/client=c/mutual=false/chaincache=hit-2 1 150 ns/op 90 client-ns/op
BenchmarkLatency/server=std/client=std-2 1 100 ns/op 60 client-ns/op
BenchmarkLatency/server=tcp/client=tcp-2 1 80 ns/op
BenchmarkStart/impl=std-2 1 100 ns/op
BenchmarkStart/impl=c-2 1 120 ns/op
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, unit, want string }{
		{"Handshake/server=ossl/client=ossl/mutual=false/chaincache=hit", "ns/op", "pure C 1.50"},
		{"Handshake/server=ossl/client=ossl/mutual=false/chaincache=hit", "client-ns/op", "pure C 1.50"},
		{"Handshake/server=ossl/client=ossl/mutual=false/chaincache=hit", "server-ns/op", ""},
		{"Handshake/server=ossl/client=ossl/mutual=false/chaincache=off", "ns/op", ""},
		{"Handshake/server=ossl/client=ossl/mutual=true/chaincache=hit", "ns/op", ""},
		{"Handshake/server=std/client=ossl/mutual=false/chaincache=hit", "ns/op", ""},
		{"Latency/server=ossl/client=ossl/record=direct", "ns/op", "plain TCP 0.80"},
		{"Latency/server=std/client=ossl/record=direct", "ns/op", "plain TCP 0.80"},
		{"Latency/server=ossl/client=ossl/record=direct", "client-ns/op", ""},
		{"Start/impl=ossl", "ns/op", "pure C 1.20"},
		{"Connections/server=ossl/client=ossl", "ns/op", ""},
	} {
		if got := r.floorOf(name(test.name), test.unit).String(); got != test.want {
			t.Errorf("floor of %s in %s is %q, want %q", test.name, test.unit, got, test.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		has, met bool
		beaten   string
		want     string
	}{
		{false, false, "pure C", ""},
		{true, true, "", "1.0, met"},
		{true, true, "pure C", "1.0, met"},
		{true, false, "", "1.0, **missed**"},
		{true, false, "pure C", "1.0, **missed**, pure C too"},
	} {
		if got := verdict(test.has, test.met, "1.0", test.beaten); got != test.want {
			t.Errorf("verdict(%v, %v, %q) = %q, want %q", test.has, test.met, test.beaten, got, test.want)
		}
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
