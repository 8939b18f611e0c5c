package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/ossl-go/ossl/bench"
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
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Options.SeparateColumns = false
	t.Style().Options.DrawBorder = false
	t.AppendHeader(table.Row{"", "crypto/tls", "ossl", "ossl is", "range"})
	for _, row := range result.Rows {
		speed := row.comparison()
		if v := row.verdict(); colours && (v == faster || v == slower) {
			speed = row.verdict().colour().Sprint(speed)
		}
		t.AppendRow(table.Row{row.Name, row.figure(row.Std), row.figure(row.OSSL), speed, row.spread()})
	}
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 3, Align: text.AlignRight, AlignHeader: text.AlignRight},
	})
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
	if slices.ContainsFunc(result.Rows, func(r demoRow) bool { return r.verdict() == unclear }) {
		fmt.Fprintln(w, "Can't tell: the range is too wide. A longer --duration, or an idle machine, makes it narrower.")
	}
	if result.Load > float64(result.CPUs)/2 {
		fmt.Fprintf(w, "Other programs were busy (load %.1f): on an idle machine the figures are better and vary less.\n", result.Load)
	}
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

// figure formats the time of an operation in the row's unit.
func (r demoRow) figure(ns float64) string {
	switch r.Unit {
	case perSecond:
		return fmt.Sprintf("%.0f /s  ", 1e9/ns)
	case throughput:
		return fmt.Sprintf("%.0f MB/s", float64(r.Bytes)/ns*1e9/1e6)
	}
	if d := time.Duration(ns); d < 100*time.Microsecond {
		return fmt.Sprintf("%.1f µs  ", ns/1e3)
	}
	return fmt.Sprintf("%.0f µs  ", ns/1e3)
}

// same is the largest ratio that counts as no difference. If the range goes beyond wide, in either
// direction, the measurement doesn't show that there is no difference.
const same, wide = 1.03, 1.1

// A verdict is a row's result for ossl.
type verdict int

const (
	asFast verdict = iota
	faster
	slower
	unclear // the rounds differ too much
)

// verdict compares the implementations. A difference that is small, or that may be chance, doesn't
// count.
func (r demoRow) verdict() verdict {
	switch {
	case r.Ratio > same && r.Low > 1:
		return slower
	case r.Ratio < 1/same && r.High < 1:
		return faster
	case r.Low < 1/wide || r.High > wide:
		return unclear
	}
	return asFast
}

// comparison returns r's ratio in words.
func (r demoRow) comparison() string {
	switch r.verdict() {
	case slower:
		return fmt.Sprintf("%.2fx slower", r.Ratio)
	case faster:
		return fmt.Sprintf("%.2fx faster", 1/r.Ratio)
	case unclear:
		return "can't tell"
	}
	return "about the same"
}

// spread returns the range of the ratio, in the direction that comparison uses.
func (r demoRow) spread() string {
	low, high := r.Low, r.High
	if r.verdict() == faster {
		low, high = 1/r.High, 1/r.Low
	}
	return fmt.Sprintf("%.2f - %.2f", low, high)
}

func (v verdict) colour() text.Color {
	return map[verdict]text.Color{slower: text.FgYellow, faster: text.FgGreen}[v]
}
