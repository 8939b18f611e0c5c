package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ossl-go/ossl/cmd/ossl/internal/measure"
)

func TestFastestHint(t *testing.T) {
	for version, older := range map[string]bool{
		"1.1.1w": true, "3.0.19": true, "3.5.7": true, "3.50.1": true, "4.0.0": false, "4.1.0-dev": false, "5.0.0": false, "": false,
	} {
		if hint := fastestHint(version); (hint != "") != older {
			t.Errorf("%s: %q", version, hint)
		}
	}
}

// wideReport has the widest possible figures, if ossl's are so many times crypto/tls's.
func wideReport(ratios ...float64) *measure.Report {
	report := &measure.Report{Rounds: demoRounds, Rows: measure.Demo(false), Engines: []string{"crypto/tls", "ossl"},
		Machine: measure.Machine{Go: "go1.26.10", CPUs: 256, Load: 1000, Processor: "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"}}
	for _, row := range report.Rows {
		row.Figures = make([][]float64, 2)
		for _, ratio := range ratios {
			std := 99e6
			if row.Unit != measure.PerOperation {
				std = 5e3
			}
			row.Figures[0], row.Figures[1] = append(row.Figures[0], std), append(row.Figures[1], ratio*std)
		}
	}
	return report
}

// The widest possible figures still fit a terminal of 100 columns.
func TestTableFits(t *testing.T) {
	lib := library{
		VersionText: "OpenSSL 3.5.7+quic 29 Sep 2026", Path: "/usr/lib/x86_64-linux-gnu/libssl.so.3",
		PostQuantum: true, FIPS: true, KernelTLS: []string{"TLS 1.2", "TLS 1.3"},
	}
	var out bytes.Buffer
	writeHead(&out, lib)
	writeDemo(&out, wideReport(9.9, 10.09, 99.9), lib, false)
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestTableDirection checks that words and ratios count in the same direction, in every unit.
func TestTableDirection(t *testing.T) {
	for ratio, want := range map[float64]string{0.5: "2.00x faster  0.50 (0.50-0.50)", 2: "2.00x slower  2.00 (2.00-2.00)"} {
		report := wideReport(ratio, ratio, ratio)
		var out bytes.Buffer
		writeDemo(&out, report, library{}, false)
		if n := strings.Count(out.String(), want); n != len(report.Rows) {
			t.Errorf("%d of %d rows have %q:\n%s", n, len(report.Rows), want, &out)
		}
		if !strings.Contains(out.String(), "ossl's time for the same work, or memory, to crypto/tls's, so below 1 is better") {
			t.Errorf("the legend is missing:\n%s", &out)
		}
	}
}

func TestColour(t *testing.T) {
	for _, on := range []bool{false, true} {
		var out bytes.Buffer
		writeDemo(&out, wideReport(2, 2, 2), library{}, on)
		if got := strings.Contains(out.String(), "\x1b["); got != on {
			t.Errorf("colours %v, asked for %v", got, on)
		}
	}
}
