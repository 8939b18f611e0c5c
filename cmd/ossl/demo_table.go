package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/ossl-go/ossl/bench"
	"github.com/ossl-go/ossl/cmd/ossl/internal/measure"
)

// colours reports whether output to w should have colours.
func colours(w io.Writer, refused bool) bool {
	// https://no-color.org: set to any value that is not empty.
	return !refused && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// writeHead writes which library is measured.
func writeHead(w io.Writer, lib library) {
	writeLine(w, "OpenSSL", lib.VersionText)
	writeLine(w, "libssl", lib.Path)
	writeLine(w, "can do", lib.abilities())
	writeFIPS(w, lib)
	fmt.Fprintln(w)
}

func writeTable(w io.Writer, result demoResult, colours bool) {
	if colours {
		text.EnableColors() // otherwise go-pretty would consult the environment again
	}
	t := table.NewWriter()
	styleTable(t, 2, true)
	t.AppendHeader(table.Row{"", "crypto/tls", "ossl", "ossl is", "range"})
	for _, row := range result.Rows {
		t.AppendRow(table.Row{row.Name, row.row.Figure(row.Std), row.row.Figure(row.OSSL), coloured(row.Comparison, row.Unit, colours),
			row.Spread()})
	}
	fmt.Fprintln(w, t.Render())
	chains := "Chain cache: ossl's clients remember chains they have verified; crypto/tls verifies each time."
	if result.Library.FIPSRequired != "" {
		chains = "In FIPS mode OpenSSL verifies each chain. crypto/tls is not in its own FIPS mode."
	}
	fmt.Fprintf(w, `
TLS 1.3, %v, AES-128-GCM, no resumption; server and client in this process, over loopback.
%s
Medians of %d alternating rounds; range: with 90%% confidence. %s, %d processors.
`, bench.DefaultKex(), chains, result.Rounds, result.Go, result.CPUs)
	if hint := fastestHint(result.Library.Version); hint != "" {
		fmt.Fprintln(w, hint)
	}
	if slices.ContainsFunc(result.Rows, func(r demoRow) bool { return r.Verdict() == measure.Unclear }) {
		fmt.Fprintln(w, "Can't tell: the range is too wide. A longer --duration, or an idle machine, makes it narrower.")
	}
	writeLoad(w, measure.Machine{CPUs: result.CPUs, Load: result.Load})
}

// fastestLine is the line of OpenSSL's releases that ossl is fastest with, of those that were
// measured: docs/PERFORMANCE.md.
const fastestLine = "4.0"

// fastestHint returns a line for a user of an older OpenSSL, or "".
func fastestHint(version string) string {
	if older, err := olderThan(version, fastestLine); err != nil || !older {
		return ""
	}
	return fmt.Sprintf("OpenSSL %s is the fastest that ossl was measured with; this is %s.", fastestLine, version)
}

// olderThan reports whether a version such as 3.0.19 or 1.1.1w comes before a line such as 4.0.
func olderThan(version, line string) (bool, error) {
	numbers := func(s string) (major, minor int, err error) {
		_, err = fmt.Sscanf(s, "%d.%d", &major, &minor)
		return major, minor, err
	}
	major, minor, err := numbers(version)
	if err != nil {
		return false, err
	}
	lineMajor, lineMinor, err := numbers(line)
	return major < lineMajor || major == lineMajor && minor < lineMinor, err
}
