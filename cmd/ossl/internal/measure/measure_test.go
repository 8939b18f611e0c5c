package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		ratio, low, high float64
		comparison       string
	}{
		{1.5, 1.4, 1.6, "1.50x slower"},
		{0.5, 0.4, 0.8, "2.00x faster"},
		{1.02, 1.01, 1.03, "about the same"}, // too small
		{1.2, 0.9, 1.5, "can't tell"},        // may be chance
		{0.9, 0.8, 1.05, "can't tell"},
		{1.02, 1.01, 1.2, "can't tell"}, // too small, or much
		{1.05, 0.99, 1.09, "about the same"},
		{0.98, 0.975, 0.99, "about the same"},
	} {
		c := Comparison{rounds.Ratio{Median: test.ratio, Low: test.low, High: test.high}}
		if got := c.Words(PerOperation); got != test.comparison {
			t.Errorf("ratio %v (%v - %v): %q, want %q", test.ratio, test.low, test.high, got, test.comparison)
		}
	}
}

// A scripted engine has the same figure for each row, times the number of the round.
type scripted struct {
	name  string
	ns    float64
	calls int
	err   error
	lacks string
}

func (s *scripted) Name() string { return s.name }
func (s *scripted) Close() error { return nil }

func (s *scripted) Lacks(row *Row) bool { return row.Benchmark == s.lacks }

func (s *scripted) Measure(context.Context, *Row, time.Duration) (float64, error) {
	s.calls++
	return s.ns, s.err
}

func testRows() []*Row {
	return []*Row{
		{Section: "handshakes", Name: "handshake <key>", Benchmark: "Handshake/cert=P256", Unit: PerOperation},
		{Section: "bulk", Name: "bulk", Benchmark: "Bulk", Unit: Throughput, Bytes: 1 << 20},
		{Section: "memory", Name: "idle connection", Benchmark: "IdleMemory", Unit: Memory,
			once: func(context.Context, Ends) (float64, error) { return 0, nil }},
	}
}

func report(t *testing.T) *Report {
	engines := []Engine{
		&scripted{name: "crypto/tls", ns: 200e3}, &scripted{name: "ossl", ns: 100e3}, &scripted{name: "ossl on 9.9", ns: 300e3},
	}
	r := &Report{Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), OpenSSL: "OpenSSL 9 <new>", Rounds: 3,
		Missing: []string{"a row: a reason"}, Rows: testRows()}
	steps := 0
	err := Run(t.Context(), r.Rows, engines, Options{Rounds: r.Rounds, Duration: time.Second, Step: func(int, string) { steps++ }})
	if err != nil {
		t.Fatal(err)
	}
	if want := Steps(r.Rows, engines, r.Rounds); steps != want || want != 3*3*2+3 {
		t.Errorf("%d steps, want %d", steps, want)
	}
	for _, e := range engines {
		r.Engines = append(r.Engines, e.Name())
		if calls := e.(*scripted).calls; calls != 2*3+1 {
			t.Errorf("%s has measured %d times, want 7: three rounds of two rows, and the memory once", e.Name(), calls)
		}
	}
	return r
}

// TestRunFails checks that an error names the row and the engine, and that Run stops when its
// context is done.
func TestRunFails(t *testing.T) {
	broken := &scripted{name: "ossl", err: errors.New("broken")}
	err := Run(t.Context(), testRows()[:1], []Engine{broken}, Options{Rounds: 1, Step: func(int, string) {}})
	if err == nil || err.Error() != "handshake <key>, ossl: broken" {
		t.Errorf("Run returns %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = Run(ctx, testRows(), []Engine{broken}, Options{Rounds: 1, Step: func(int, string) {}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run returns %v", err)
	}
	// Ctrl-C kills an engine in another process as well.
	ctx, cancel = context.WithCancel(t.Context())
	err = Run(ctx, testRows(), []Engine{broken}, Options{Rounds: 1, Step: func(int, string) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run returns %v", err)
	}
}

// TestCommon checks that rows which another OpenSSL lacks are left out, and named.
func TestCommon(t *testing.T) {
	common, missing := Common(testRows(), []Engine{&scripted{name: "ossl"}, &scripted{name: "ossl on 1.1.1", lacks: "Bulk"}})
	if len(common) != 2 || common[0].Name != "handshake <key>" || common[1].Name != "idle connection" {
		t.Errorf("%v", common)
	}
	if want := []string{"bulk: not possible with ossl on 1.1.1"}; !slices.Equal(missing, want) {
		t.Errorf("missing: %q, want %q", missing, want)
	}
}

// TestWorker checks that a worker names its rows at first, and measures by those names.
func TestWorker(t *testing.T) {
	var out bytes.Buffer
	requests := `{"row":"Latency","duration":1}` + "\n" + `{"row":"Nothing","duration":1}` + "\n"
	if err := work(strings.NewReader(requests), &out); err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(&out)
	var first, figure, unknown answer
	if err := errors.Join(answers.Decode(&first), answers.Decode(&figure), answers.Decode(&unknown)); err != nil {
		t.Fatal(err)
	}
	all, _ := Rows([]string{"latency"}, false)
	if first.Version == "" || (&worker{rows: first.Rows}).Lacks(all[0]) {
		t.Errorf("%+v", first)
	}
	if figure.Figure <= 0 || figure.Error != "" || unknown.Error == "" {
		t.Errorf("%+v, %+v", figure, unknown)
	}
}

// TestWorkerEnds: a measurement stops when its context is done, also if the worker is a process of
// a script.
func TestWorkerEnds(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	// cat, which holds the output open, exits when its input is closed.
	text := "#!/bin/sh\necho '{\"version\":\"1\",\"rows\":[\"Latency\"]}'\nexec 3<&0\ncat <&3 4>&1 >/dev/null &\nwait\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, err := NewWorker(ctx, script)
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := Rows([]string{"latency"}, false)
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := w.Measure(ctx, rows[0], time.Second); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = w.Close()
}

// TestNoTime checks that there are figures however short the time is.
func TestNoTime(t *testing.T) {
	list, _ := Rows([]string{"latency"}, false)
	if err := Run(t.Context(), list, []Engine{Local(Both(bench.Std))}, Options{Rounds: 1, Step: func(int, string) {}}); err != nil {
		t.Fatal(err)
	}
	if figure := list[0].Median(0); !(figure > 0) {
		t.Errorf("a round trip takes %v", figure)
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := report(t).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Date, OpenSSL string
		Engines       []string
		Rows          []struct {
			Name    string
			Figures []float64
			Rounds  [][]float64
			Ratios  []map[string]float64
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 3 || got.Rows[0].Figures[1] != 100e3 || len(got.Rows[0].Rounds[1]) != 3 ||
		got.Rows[0].Ratios[0]["ratio"] != 0.5 || got.Rows[0].Ratios[1]["ratio_high"] != 1.5 || got.Date != "2026-01-02T03:04:05Z" {
		t.Errorf("%s", &out)
	}
}

func TestBenchstat(t *testing.T) {
	var out bytes.Buffer
	if err := report(t).WriteBenchstat(&out); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^(Benchmark[^ ]+-\d+ 1 \d+ (ns/op|bytes/conn)( [\d.]+ MB/s)?|[a-z]+: .*)$`)
	n := 0
	for text := range strings.Lines(out.String()) {
		if !line.MatchString(strings.TrimSuffix(text, "\n")) {
			t.Errorf("not of Go's benchmark format: %q", text)
		}
		if strings.HasPrefix(text, "Benchmark") {
			n++
		}
	}
	if n != 3*(3+3+1) || !strings.Contains(out.String(), "engine: ossl-on-9.9\n") {
		t.Errorf("%d lines:\n%s", n, &out)
	}
}

// TestPage checks that the page has every figure, and that text from outside can't become HTML.
func TestPage(t *testing.T) {
	var out bytes.Buffer
	if err := report(t).WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, want := range []string{
		"OpenSSL 9 &lt;new&gt;", "handshake &lt;key&gt;", "200 µs", "100 µs", "2.00x faster", "1.50x slower",
		"1.50x more", "1.50 (1.50-1.50)", "1.50 (one round)", "2.00x less", "a row: a reason", "measured on 2026-01-02", "<svg "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"<new>", "<key>", "ZgotmplZ", "<script", "http://", "https://", "NaN", "Inf"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// TestPageKey checks that each of the most engines that ossl bench can have is named above the
// charts, and has a colour.
func TestPageKey(t *testing.T) {
	engines := []string{"crypto/tls", "ossl", Local(Ends{bench.OSSL, bench.Std}).Name(), Local(Ends{bench.Std, bench.OSSL}).Name(),
		"ossl on 3.0.22"}
	row := testRows()[0]
	for range engines {
		row.Figures = append(row.Figures, []float64{1})
	}
	var out bytes.Buffer
	if err := (&Report{Engines: engines, Rows: []*Row{row}}).WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	end := 0.0 // of the name before
	for i, name := range engines[1:] {
		if style := fmt.Sprintf(".bar.e%d { fill: var(--e%d); }", i+1, i+1); !strings.Contains(out.String(), style) {
			t.Errorf("%s has no colour", name)
		}
		key := regexp.MustCompile(`<rect class="bar e\d" x="(-?\d+)" y="4" [^>]*><text x="(\d+)" y="14">` + name + `<`)
		found := key.FindStringSubmatch(out.String())
		if found == nil {
			t.Errorf("%s is not named", name)
			continue
		}
		at, _ := strconv.ParseFloat(found[1], 64)
		text, _ := strconv.ParseFloat(found[2], 64)
		if at < end {
			t.Errorf("%s begins at %v, before the end of the name before, %v", name, at, end)
		}
		const character = 6.6 // at most, in sans-serif of 13 pixels
		if end = text + character*float64(len(name)); end > chartWidth {
			t.Errorf("%s ends at %v, outside of the chart", name, end)
		}
	}
}
