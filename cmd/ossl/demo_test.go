package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ossl-go/ossl/bench"
)

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		ratio, low, high float64
		comparison       string
		spread           string
	}{
		{1.5, 1.4, 1.6, "1.50x slower", "1.40 - 1.60"},
		{0.5, 0.4, 0.8, "2.00x faster", "1.25 - 2.50"},
		{1.02, 1.01, 1.03, "about the same", "1.01 - 1.03"}, // too small
		{1.2, 0.9, 1.5, "can't tell", "0.90 - 1.50"},        // may be chance
		{0.9, 0.8, 1.05, "can't tell", "0.80 - 1.05"},
		{1.02, 1.01, 1.2, "can't tell", "1.01 - 1.20"}, // too small, or much
		{1.05, 0.99, 1.09, "about the same", "0.99 - 1.09"},
		{0.98, 0.975, 0.99, "about the same", "0.97 - 0.99"},
	} {
		row := demoRow{Ratio: test.ratio, Low: test.low, High: test.high}
		if got := row.comparison(); got != test.comparison {
			t.Errorf("ratio %v (%v - %v): %q, want %q", test.ratio, test.low, test.high, got, test.comparison)
		}
		if got := row.spread(); got != test.spread {
			t.Errorf("ratio %v: spread %q, want %q", test.ratio, got, test.spread)
		}
	}
}

func TestSummarize(t *testing.T) {
	var row demoRow
	for _, ms := range []int{10, 30, 20} { // the machine's speed in three rounds
		row.add(bench.Std, time.Duration(ms)*time.Millisecond)
		row.add(bench.OSSL, 2*time.Duration(ms)*time.Millisecond)
	}
	row.summarize()
	if row.Std != 20e6 || row.OSSL != 40e6 || row.Ratio != 2 || row.Low != 2 || row.High != 2 {
		t.Errorf("%+v", row)
	}
}

func TestFastestHint(t *testing.T) {
	for version, older := range map[string]bool{
		"1.1.1w": true, "3.0.19": true, "3.5.7": true, "3.50.1": true, "4.0.0": false, "4.1.0-dev": false, "5.0.0": false, "": false,
	} {
		if hint := fastestHint(version); (hint != "") != older {
			t.Errorf("%s: %q", version, hint)
		}
	}
}

// One slow round doesn't change the ratio, and rounds that differ widen its range.
func TestSummarizeOutliers(t *testing.T) {
	var row demoRow
	for i := range demoRounds {
		std, ossl := 10*time.Millisecond, time.Duration(15+i%3)*time.Millisecond
		if i == 4 {
			ossl *= 10
		}
		row.add(bench.Std, std)
		row.add(bench.OSSL, ossl)
	}
	row.summarize()
	if row.Ratio != 1.6 || row.Low >= 1.6 || row.High <= 1.6 || row.Low < 1.5 || row.High > 1.7 {
		t.Errorf("ratio %v (%v - %v)", row.Ratio, row.Low, row.High)
	}
}

// The widest possible figures still fit a terminal of 100 columns.
func TestTableFits(t *testing.T) {
	result := demoResult{
		Library: library{
			VersionText: "OpenSSL 3.5.7+quic 29 Sep 2026", Path: "/usr/lib/x86_64-linux-gnu/libssl.so.3",
			PostQuantum: true, FIPS: true, KernelTLS: []string{"TLS 1.2", "TLS 1.3"},
		},
		Go: "go1.26.10", CPUs: 256, Load: 1000, Rounds: demoRounds, Rows: demoRows(false),
	}
	for i := range result.Rows {
		r := &result.Rows[i]
		r.Std, r.OSSL, r.Ratio, r.Low, r.High = 99e6, 999e6, 10.09, 9.9, 99.9
		if r.Unit != perOperation {
			r.Std, r.OSSL = 5e3, 5e3
		}
	}
	var out bytes.Buffer
	writeHead(&out, result.Library)
	writeTable(&out, result, false)
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestColour(t *testing.T) {
	result := demoResult{Rows: []demoRow{{Name: "row", Unit: perOperation, Ratio: 2, Low: 2, High: 2}}}
	for _, on := range []bool{false, true} {
		var out bytes.Buffer
		writeTable(&out, result, on)
		if got := strings.Contains(out.String(), "\x1b["); got != on {
			t.Errorf("colours %v, asked for %v", got, on)
		}
	}
}
