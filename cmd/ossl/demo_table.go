package main

import (
	"fmt"
	"io"
	"os"
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
	fmt.Fprintf(w, "OpenSSL     %s\n", lib.VersionText)
	fmt.Fprintf(w, "libssl      %s\n", lib.Path)
	fmt.Fprintf(w, "can do      %s\n", lib.abilities())
	if lib.FIPSRequired != "" {
		fmt.Fprintf(w, "FIPS mode   %s\n            by %s\n", lib.FIPSRequired, lib.FIPSModule)
	}
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
		if colours && row.verdict() != asFast {
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
	if result.Load > float64(result.CPUs)/2 {
		fmt.Fprintf(w, "Other programs were busy (load %.1f): on an idle machine the figures are better and vary less.\n", result.Load)
	}
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

// same is the largest ratio that counts as no difference.
const same = 1.03

// A verdict is a row's result for ossl.
type verdict int

const (
	asFast verdict = iota
	faster
	slower
)

// verdict compares the implementations. A difference that is small, or that may be chance, doesn't
// count.
func (r demoRow) verdict() verdict {
	switch {
	case r.Ratio > same && r.Low > 1:
		return slower
	case r.Ratio < 1/same && r.High < 1:
		return faster
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
