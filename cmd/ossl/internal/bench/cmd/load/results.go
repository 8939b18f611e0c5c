//go:build linux

package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

// results holds the turns of each row with their samples, and the memory of idle clients.
type results struct {
	rows    [][]turn
	samples rounds.Samples[turn, sample]
	memory  map[turn]float64 // bytes a client
}

// print writes the table of the turns, in Markdown.
func (r *results) print(w io.Writer) {
	var lines [][]string
	for _, turns := range r.rows {
		name := turns[0].row.String()
		for _, t := range turns {
			rate, each := r.samples.Median(t, sample.rate), r.samples.Median(t, sample.each)
			work, spent := fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.1f us", each/1e3)
			if t.row.perByte() {
				work, spent = fmt.Sprintf("%.0f MB", rate/1e6), fmt.Sprintf("%.0f MB/s", 1e3/each) // bytes a nanosecond are GB/s
			}
			line := []string{name, t.stack, work, spent}
			for _, figure := range []func(sample) float64{sample.rate, sample.each} {
				ratio := ""
				if t.stack != stackOSSL {
					ratio = r.samples.Compare(turn{t.row, stackOSSL}, t, figure).String()
				}
				line = append(line, ratio)
			}
			lines = append(lines, line)
			name = ""
		}
	}
	head := []string{"", "server", "work a second", "processor time", "work, ossl / server", "processor time, ossl / server"}
	rounds.WriteMarkdown(w, head, lines)
}

// printMemory writes the table of rows of idle clients.
func (r *results) printMemory(w io.Writer, rows []row, run *runner) {
	var lines [][]string
	for _, row := range rows {
		name := row.String()
		for _, stack := range run.stacks(row) {
			bytes, ratio := r.memory[turn{row, stack}], ""
			if stack != stackOSSL {
				ratio = fmt.Sprintf("%.2f", r.memory[turn{row, stackOSSL}]/bytes)
			}
			lines = append(lines, []string{name, stack, fmt.Sprintf("%.1f KB", bytes/1e3), ratio})
			name = ""
		}
	}
	rounds.WriteMarkdown(w, []string{"", "server", "resident memory", "ossl / server"}, lines)
}

// writeTSV writes every turn.
func (r *results) writeTSV(w io.Writer) {
	var lines [][]string
	for _, turns := range r.rows {
		for _, t := range turns {
			unit, digits := "request", 0
			if t.row.perByte() {
				unit, digits = "byte", 4
			}
			for i, s := range r.samples[t] {
				lines = append(lines, []string{t.row.String(), t.stack, strconv.Itoa(i + 1), unit, fmt.Sprintf("%.0f", s.rate()),
					fmt.Sprintf("%.*f", digits, s.each())})
			}
		}
	}
	rounds.WriteTSV(w, []string{"row", "server", "round", "unit", "work_per_s", "ns_per_unit"}, lines)
}

// legend explains the tables.
func (r *runner) legend(n int, seed uint64) string {
	text := fmt.Sprintf(`%d rounds, turns of %v, seed %d. Figures are medians.
Ratios are of ossl's figure to the server's: above 1 ossl does more work, or takes more processor
time. %s

`, n, r.turn, seed, rounds.Legend(n))
	if len(r.processors) > 0 {
		return r.scaledLegend(n, seed)
	}
	if r.bare() {
		text += fmt.Sprintf(`- *Work* is connections, *1KB* with a request of 1 KB and its answer; only nginx parses requests.
  %d clients make them; each resumes its own last session.
- *Processor time* is that of the server with its children, for a connection.
`, r.clients)
		if r.slack > 0 {
			text += fmt.Sprintf("- *Slack*: the servers in Go have a timer slack of %v.\n", r.slack)
		}
		return text
	}
	return text + fmt.Sprintf(`- *Work* is requests, each answered with 1 KB, or bytes of files of 10 MB.
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
`, r.clients, keptClients, streams, largeClients, group, suite13, workers, stackGo, r.idle)
}
