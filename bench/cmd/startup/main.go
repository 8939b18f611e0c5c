// Command startup measures the start of programs that make one handshake, and writes Markdown: a
// table of the programs, of which the first is the one that the others are compared with, and a
// table of package bench's BenchmarkNewContext. ci/start-up calls it.
//
//	startup [-rounds N] [-run LIBRUN] [-libssl VERSION] [-contexts FILE] NAME=PROGRAM…
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ossl-go/ossl/bench"
)

func main() {
	rounds := flag.Int("rounds", 50, "run each program `N` times")
	librun := flag.String("run", "", "a `program` that starts another one on an OpenSSL of its own")
	version := flag.String("libssl", "", "the `version` of OpenSSL, for the title")
	contexts := flag.String("contexts", "", "the output of BenchmarkNewContext, in a `file`")
	flag.Parse()
	if err := run(os.Stdout, *rounds, *librun, *version, *contexts, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, rounds int, librun, version, contexts string, args []string) error {
	var names, programs []string
	for _, arg := range args {
		name, program, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%s is not NAME=PROGRAM", arg)
		}
		names, programs = append(names, name), append(programs, program)
	}
	if rounds < 1 || len(programs) == 0 {
		return fmt.Errorf("there is nothing to measure")
	}
	starts, err := bench.Starts(programs, librun, rounds)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "# The start of a process: libssl %s\n\n"+
		"Programs that make one server, one client, one handshake, and end, %d times each, in random order.\n"+
		"Medians, and quartiles; a ratio is that of a round.\n\n", version, rounds)
	fmt.Fprint(w, "| program | processor time | ratio | quartiles | elapsed | ratio | quartiles |\n|---|--:|--:|:-:|--:|--:|:-:|\n")
	for i, name := range names {
		fmt.Fprintf(w, "| %s |%s%s\n", name,
			columns(starts[i], starts[0], func(s bench.Start) time.Duration { return s.CPU }),
			columns(starts[i], starts[0], func(s bench.Start) time.Duration { return s.Elapsed }))
	}
	if contexts == "" {
		return nil
	}
	text, err := os.ReadFile(contexts)
	if err != nil {
		return err
	}
	return writeContexts(w, string(text))
}

// columns returns the medians of a time in ms and of its ratios to the base's in the same round, and
// the quartiles.
func columns(starts, base []bench.Start, of func(bench.Start) time.Duration) string {
	var times, ratios []float64
	for i := range starts {
		times = append(times, of(starts[i]).Seconds()*1e3)
		ratios = append(ratios, of(starts[i]).Seconds()/of(base[i]).Seconds())
	}
	s := fmt.Sprintf(" %.1f ms (%.1f-%.1f) |", quantile(times, 2), quantile(times, 1), quantile(times, 3))
	if &starts[0] == &base[0] {
		return s + " | |"
	}
	return s + fmt.Sprintf(" **%.2f** | %.2f-%.2f |", quantile(ratios, 2), quantile(ratios, 1), quantile(ratios, 3))
}

// quantile returns a quarter of the sorted values, half of them, or three quarters.
func quantile(values []float64, quarters int) float64 {
	slices.Sort(values)
	return values[(len(values)-1)*quarters/4]
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
		"(`BenchmarkNewContext`; medians of five). A tls.Config costs crypto/tls nothing until it is used.\n\n"+
		"| Context of | time | memory in Go | in C |\n|---|--:|--:|--:|\n")
	for _, role := range []string{"client", "server"} {
		row := [3]float64{}
		for i, unit := range []string{"ns/op", "go-B/context", "c-B/context"} {
			v := values[role+" "+unit]
			if len(v) == 0 {
				return fmt.Errorf("no %s of %s in the benchmark's output", unit, role)
			}
			row[i] = quantile(v, 2)
		}
		fmt.Fprintf(w, "| a %s | %.0f us | %.1f KB | %.1f KB |\n", role, row[0]/1e3, row[1]/1e3, row[2]/1e3)
	}
	return nil
}
