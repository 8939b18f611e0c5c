// Command startup measures the start of programs that make one handshake, and writes Markdown: a
// table of the programs, of which the first is the one that the others are compared with, and a
// table of package bench's BenchmarkNewContext. ci/start-up calls it.
//
//	startup [-rounds N] [-run LIBRUN] [-libssl VERSION] [-contexts FILE] NAME=PROGRAM…
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/ossl-go/ossl/bench"
	"github.com/ossl-go/ossl/bench/rounds"
)

func main() {
	n := flag.Int("rounds", 50, "run each program `N` times")
	librun := flag.String("run", "", "a `program` that starts another one on an OpenSSL of its own")
	version := flag.String("libssl", "", "the `version` of OpenSSL, for the title")
	contexts := flag.String("contexts", "", "the output of BenchmarkNewContext, in a `file`")
	flag.Parse()
	if err := run(os.Stdout, *n, *librun, *version, *contexts, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, n int, librun, version, contexts string, args []string) error {
	var names, programs []string
	for _, arg := range args {
		name, program, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%s is not NAME=PROGRAM", arg)
		}
		names, programs = append(names, name), append(programs, program)
	}
	if n < 1 || len(programs) == 0 {
		return errors.New("there is nothing to measure")
	}
	starts, err := bench.Starts(programs, librun, n)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "# The start of a process: libssl %s\n\n"+
		"Programs that make one server, one client, one handshake, and end, %d times each, in random order.\n"+
		"Times are medians; ratios are to %s's. %s\n", version, n, names[0], rounds.Legend(n))
	var rows [][]string
	for i, program := range programs {
		row := []string{names[i]}
		for _, of := range []func(bench.Start) float64{
			func(s bench.Start) float64 { return s.CPU.Seconds() }, func(s bench.Start) float64 { return s.Elapsed.Seconds() },
		} {
			ratio := ""
			if i > 0 {
				ratio = starts.Compare(program, programs[0], of).String()
			}
			row = append(row, fmt.Sprintf("%.1f ms", starts.Median(program, of)*1e3), ratio)
		}
		rows = append(rows, row)
	}
	rounds.WriteMarkdown(w, []string{"program", "processor time", "ratio", "elapsed", "ratio"}, rows)
	if contexts == "" {
		return nil
	}
	text, err := os.ReadFile(contexts)
	if err != nil {
		return err
	}
	return writeContexts(w, string(text))
}

// writeContexts writes a table from the output of BenchmarkNewContext.
func writeContexts(w io.Writer, text string) error {
	values := map[string][]float64{} // by role and unit
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "BenchmarkNewContext/role=") {
			continue
		}
		role, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "BenchmarkNewContext/role="), "-")
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			values[role+" "+fields[i+1]] = append(values[role+" "+fields[i+1]], v)
		}
	}
	fmt.Fprint(w, "\nOne more Context among 1,000: the time to make it, and its memory for as long as it is in use\n"+
		"(`BenchmarkNewContext`; medians of five). A tls.Config costs crypto/tls nothing until it is used.\n")
	var rows [][]string
	for _, role := range []string{"client", "server"} {
		row := []string{"a " + role}
		for _, column := range []struct{ unit, format string }{
			{"ns/op", "%.0f us"}, {"go-B/context", "%.1f KB"}, {"c-B/context", "%.1f KB"},
		} {
			v := values[role+" "+column.unit]
			if len(v) == 0 {
				return fmt.Errorf("no %s of %s in the benchmark's output", column.unit, role)
			}
			row = append(row, fmt.Sprintf(column.format, rounds.Median(v)/1e3))
		}
		rows = append(rows, row)
	}
	rounds.WriteMarkdown(w, []string{"Context of", "time", "memory in Go", "in C"}, rows)
	return nil
}
