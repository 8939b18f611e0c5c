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

// The widest possible figures still fit a terminal of 100 columns.
func TestTableFits(t *testing.T) {
	result := demoResult{
		Library: library{
			VersionText: "OpenSSL 3.5.7+quic 29 Sep 2026", Path: "/usr/lib/x86_64-linux-gnu/libssl.so.3",
			PostQuantum: true, FIPS: true, KernelTLS: []string{"TLS 1.2", "TLS 1.3"},
		},
		Go: "go1.26.10", CPUs: 256, Load: 1000, Rounds: demoRounds,
	}
	for _, row := range measure.Demo(false) {
		r := demoRow{Name: row.Name, Unit: row.Unit, Std: 99e6, OSSL: 999e6, row: row}
		r.Comparison = measure.Comparison{Ratio: 10.09, Low: 9.9, High: 99.9}
		if r.Unit != measure.PerOperation {
			r.Std, r.OSSL = 5e3, 5e3
		}
		result.Rows = append(result.Rows, r)
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
	row := demoRow{Name: "row", Unit: measure.PerOperation, row: &measure.Row{}}
	row.Comparison = measure.Comparison{Ratio: 2, Low: 2, High: 2}
	result := demoResult{Rows: []demoRow{row}}
	for _, on := range []bool{false, true} {
		var out bytes.Buffer
		writeTable(&out, result, on)
		if got := strings.Contains(out.String(), "\x1b["); got != on {
			t.Errorf("colours %v, asked for %v", got, on)
		}
	}
}
