package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
	"github.com/ossl-go/ossl/cmd/ossl/internal/measure"
)

// ownEngines returns the engines in this process: crypto/tls, and ossl.
func ownEngines() []measure.Engine {
	return []measure.Engine{measure.Local(measure.Both(bench.Std)), measure.Local(measure.Both(bench.OSSL))}
}

// newReport returns a report without rows.
func newReport(lib library, rounds int, command string) *measure.Report {
	return &measure.Report{Date: time.Now().UTC().Truncate(time.Second), Command: command, Machine: measure.ThisMachine(),
		OpenSSL: lib.VersionText, Libssl: lib.Path, FIPS: lib.FIPSRequired != "", Rounds: rounds}
}

// runReport measures a report's rows.
func runReport(cmd *cobra.Command, report *measure.Report, engines []measure.Engine, duration time.Duration) error {
	for _, e := range engines {
		report.Engines = append(report.Engines, e.Name())
	}
	p := newProgress(cmd.ErrOrStderr())
	p.start(report.Rounds, (measure.Steps(report.Rows, engines, report.Rounds)+report.Rounds-1)/report.Rounds)
	defer p.stop()
	o := measure.Options{Rounds: report.Rounds, Duration: duration, Step: p.step}
	return measure.Run(cmd.Context(), report.Rows, engines, o)
}

// usableLibrary returns the host's OpenSSL, if it can be used.
func usableLibrary() (library, error) {
	lib, err := findLibrary()
	return lib, cmp.Or(err, lib.err)
}

// writeHead writes which library is measured.
func writeHead(w io.Writer, lib library) {
	writeLine(w, "OpenSSL", lib.VersionText)
	writeLine(w, "libssl", lib.Path)
	writeLine(w, "can do", lib.abilities())
	writeFIPS(w, lib)
	fmt.Fprintln(w)
}

// writeTable writes a table of the rows.
func writeTable(w io.Writer, report *measure.Report, title string, rows []*measure.Row, colours bool) {
	// Otherwise a table would not fit a terminal of 100 columns.
	words, ratios := len(report.Engines) <= 3, len(report.Engines) == 2
	t := table.NewWriter()
	header, columns := table.Row{title}, []table.ColumnConfig{}
	for i, engine := range report.Engines {
		if !words {
			engine = strings.ReplaceAll(engine, " ", "\n")
		}
		header = append(header, engine)
		columns = append(columns, table.ColumnConfig{Number: len(header), Align: text.AlignRight, AlignHeader: text.AlignRight})
		if i > 0 && words {
			header = append(header, "is")
		}
		if i > 0 && ratios {
			header = append(header, "ratio")
		}
	}
	t.AppendHeader(header)
	for _, row := range rows {
		cells := table.Row{row.Name}
		for i := range report.Engines {
			cells = append(cells, row.Figure(row.Median(i)))
			c := row.Compare(i, 0)
			if i > 0 && words {
				cells = append(cells, coloured(c, row.Unit, colours))
			}
			if i > 0 && ratios {
				cells = append(cells, c.String())
			}
		}
		t.AppendRow(cells)
	}
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Options.SeparateColumns = false
	t.Style().Options.DrawBorder = false
	t.SetColumnConfigs(columns)
	t.SuppressTrailingSpaces()
	fmt.Fprintln(w, t.Render())
	fmt.Fprintln(w)
}

// writeFoot explains the tables of a report.
func writeFoot(w io.Writer, report *measure.Report) {
	for _, missing := range report.Missing {
		fmt.Fprintln(w, "Not measured:", missing)
	}
	fmt.Fprintf(w, "Medians of %d rounds, compared with %s.\n", report.Rounds, report.Engines[0])
	if len(report.Engines) == 2 {
		fmt.Fprintf(w, "Ratio: %s's time for the same work, or memory, to %s's, so below 1 is better.\n%s\n", report.Engines[1],
			report.Engines[0], report.Legend())
	}
	unclear := func(row *measure.Row) bool {
		return slices.ContainsFunc(report.Engines[1:], func(engine string) bool {
			return row.Compare(slices.Index(report.Engines, engine), 0).Verdict() == measure.Unclear
		})
	}
	if slices.ContainsFunc(report.Rows, unclear) && len(report.Engines) <= 3 {
		fmt.Fprintln(w, "Can't tell: the range is too wide. A longer --duration, or an idle machine, makes it narrower.")
	}
	fmt.Fprintf(w, "%s, %d processors in use", report.Machine.Go, report.Machine.CPUs)
	if report.Machine.Processor != "" {
		fmt.Fprintf(w, ", %s", report.Machine.Processor)
	}
	fmt.Fprintln(w)
	if report.Machine.Busy() {
		fmt.Fprintf(w, "Other programs were busy (load %.1f): on an idle machine the figures are better and vary less.\n",
			report.Machine.Load)
	}
}

// colours reports whether output to w should have colours.
func colours(w io.Writer, refused bool) bool {
	// https://no-color.org: set to any value that is not empty.
	return !refused && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func coloured(c measure.Comparison, unit measure.Unit, colours bool) string {
	words := c.Words(unit)
	colour, ok := map[measure.Verdict]text.Color{measure.Slower: text.FgYellow, measure.Faster: text.FgGreen}[c.Verdict()]
	if !ok || !colours {
		return words
	}
	text.EnableColors() // otherwise go-pretty would consult the environment again
	return colour.Sprint(words)
}
