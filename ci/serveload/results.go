//go:build linux

package main

import (
	"fmt"
	"io"

	"github.com/ossl-go/ossl/ci/internal/load"
)

// results holds the samples by turn and round, and the memory of idle clients.
type results struct {
	samples load.Samples[turn, sample]
	memory  map[turn]float64 // bytes a client
}

func newResults() *results {
	return &results{samples: load.Samples[turn, sample]{}, memory: map[turn]float64{}}
}

// ratio returns the ratios of a figure of ossl to another stack's in the same row and round, as the
// table has it.
func (r *results) ratio(t turn, figure func(sample) float64) string {
	s, ok := r.samples.Ratio(turn{t.row, stackOSSL}, t, figure)
	if !ok || t.stack == stackOSSL {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Low, s.High)
}

// print writes the tables, in Markdown.
func (r *results) print(w io.Writer, rows []row) {
	if len(rows) > 0 && len(r.samples) > 0 {
		fmt.Fprintln(w, "| | server | work a second | processor time | work, ossl / server | processor time, ossl / server |")
		fmt.Fprintln(w, "|---|---|--:|--:|--:|--:|")
	}
	for _, row := range rows {
		name := row.String()
		for _, stack := range row.stacks() {
			t := turn{row, stack}
			if len(r.samples[t]) == 0 {
				continue
			}
			rate, each := r.samples.Median(t, sample.rate), r.samples.Median(t, sample.each)
			work, spent := fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.1f us", each/1e3)
			if row.perByte() {
				work, spent = fmt.Sprintf("%.0f MB", rate/1e6), fmt.Sprintf("%.0f MB/s", 1e3/each) // bytes a nanosecond are GB/s
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", name, stack, work, spent, r.ratio(t, sample.rate), r.ratio(t, sample.each))
			name = ""
		}
	}
	if len(r.memory) == 0 {
		return
	}
	fmt.Fprintln(w, "\n| | server | resident memory | ossl / server |")
	fmt.Fprintln(w, "|---|---|--:|--:|")
	for _, row := range rows {
		name := row.String()
		for _, stack := range row.stacks() {
			bytes, ok := r.memory[turn{row, stack}]
			if !ok {
				continue
			}
			ratio := ""
			if ours := r.memory[turn{row, stackOSSL}]; stack != stackOSSL {
				ratio = fmt.Sprintf("%.2f", ours/bytes)
			}
			fmt.Fprintf(w, "| %s | %s | %.1f KB | %s |\n", name, stack, bytes/1e3, ratio)
			name = ""
		}
	}
}

// writeTSV writes every turn. The memory of idle clients is measured once.
func (r *results) writeTSV(w io.Writer, rows []row) {
	fmt.Fprintln(w, "row\tserver\tround\tunit\twork_per_s\tns_per_unit\tbytes_per_client")
	for _, row := range rows {
		unit, digits := "request", 0
		if row.perByte() {
			unit, digits = "byte", 4
		}
		for _, stack := range row.stacks() {
			t := turn{row, stack}
			for round := range len(r.samples[t]) {
				s := r.samples[t][round]
				fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%.0f\t%.*f\t\n", row, stack, round+1, unit, s.rate(), digits, s.each())
			}
			if bytes, ok := r.memory[t]; ok {
				fmt.Fprintf(w, "%s\t%s\t1\tclient\t\t\t%.0f\n", row, stack, bytes)
			}
		}
	}
}

// legend explains the tables.
func legend(rounds int, r *runner, seed uint64) string {
	return fmt.Sprintf(`%d rounds, turns of %v, seed %d. Figures are medians.
Ratios are of ossl's figure to the server's in the same round: the median, with the quartiles. Above
1 ossl does more work, or takes more processor time.

- *Work* is requests, each answered with 1 KB, or bytes of files of 10 MB.
- *Processor time* is that of the server with its children, for a request. For files it is the bytes
  for a second of it; its ratio is still that of the time for the same work.
- *New* connections have a request each; %d clients make them, and fail if a connection was resumed
  and should not have been, or the reverse. Each client resumes its own last session.
- *Kept* connections are %d, with requests by wrk, or, for HTTP/2, %d at a time on each by h2load.
  Files are read over %d.
- Clients offer %s and, in TLS 1.3, %s alone.
- nginx and hitch have %d workers, stunnel has a thread for each connection. *%s* is
  the same command with --engine go. The backend of proxies is nginx with one worker.
- *Idle clients* are %d. Their memory is the resident memory of a server, with its children,
  that was started for them, less what it had before them.
`, rounds, r.turn, seed, r.clients, keptClients, streams, largeClients, group, suite13, workers, stackGo, r.idle)
}
