//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
	"github.com/ossl-go/ossl/cmd/ossl/internal/measure"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// Further stacks of scaled rows, both ossl.
const (
	stackOneShard  = "ossl, one shard"
	stackProcesses = "ossl, processes" // one for each processor, with GOMAXPROCS=1
)

// scaledRows returns the rows of bare servers on numbers of processors.
func scaledRows(numbers []int) (rows []row) {
	for _, what := range []row{
		{what: "1.3 P256 full", version: "1.3", kind: "full"},
		{what: "1.3 P256 resumed", version: "1.3", kind: "resumed"},
		{what: "1.2 P256 resumed", version: "1.2", kind: "resumed"},
		{what: "1.3 P256 kept 1KB", version: "1.3", kind: "kept", request: bareRequest},
	} {
		for _, n := range numbers {
			what.role, what.demand, what.key, what.way, what.processors = scaled, fresh, tlstest.P256, byTicket, n
			rows = append(rows, what)
		}
	}
	return rows
}

// setProcessors parses ascending numbers, which begin with 1.
func (r *runner) setProcessors(text string) error {
	for _, s := range strings.Split(text, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return err
		}
		r.processors = append(r.processors, n)
	}
	if !slices.IsSorted(r.processors) || r.processors[0] != 1 {
		return errors.New("they must ascend from 1")
	}
	if most := r.processors[len(r.processors)-1]; most > runtime.NumCPU() {
		return fmt.Errorf("there are %d processors", runtime.NumCPU())
	}
	return nil
}

// pin returns a command that runs a program on the first processors, of which this process has more.
func (k serverKey) pin(program string, args []string) (string, []string) {
	if k.processors == 0 {
		return program, args
	}
	return "taskset", append([]string{"-c", firstProcessors(k.processors), program}, args...)
}

// firstProcessors returns the numbers of the first n processors of this process.
func firstProcessors(n int) string {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		panic(err) // a CPUSet is large enough
	}
	var numbers []string
	for cpu := 0; len(numbers) < n; cpu++ {
		if own.IsSet(cpu) {
			numbers = append(numbers, strconv.Itoa(cpu))
		}
	}
	return strings.Join(numbers, ",")
}

// environment returns the variables that make a stack of a program.
func (k serverKey) environment() []string {
	switch k.stack {
	case stackOneShard:
		return []string{"OSSL_SHARDS=1"}
	case stackProcesses:
		return []string{"GOMAXPROCS=1", "OSSL_SHARDS=1"}
	}
	return nil
}

// clientsOf returns the number of a row's clients.
func (r *runner) clientsOf(row row) int { return r.clients * max(row.processors, 1) }

// printScaled writes a table for each kind of work, in Markdown.
func (r *results) printScaled(w io.Writer) {
	head := []string{"processors", "server", "work a second", "for a processor, to one", "processor time", "to one",
		"work, to nginx", "processor time, to nginx"}
	var lines [][]string
	for i, turns := range r.rows {
		for j, t := range turns {
			line := []string{"", t.stack, fmt.Sprintf("%.0f", r.samples.Median(t, sample.rate)), "",
				fmt.Sprintf("%.1f us", r.samples.Median(t, sample.each)/1e3), "", "", ""}
			if j == 0 {
				line[0] = strconv.Itoa(t.row.processors)
			}
			if one := t; t.row.processors > 1 {
				one.row.processors = 1
				share := r.samples.Compare(t, one, sample.rate)
				n := float64(t.row.processors)
				share.Median, share.Low, share.High = share.Median/n, share.Low/n, share.High/n
				line[3], line[5] = share.String(), r.samples.Compare(t, one, sample.each).String()
			}
			if t.stack != stackNginx {
				nginx := turn{t.row, stackNginx}
				line[6], line[7] = r.samples.Compare(t, nginx, sample.rate).String(), r.samples.Compare(t, nginx, sample.each).String()
			}
			lines = append(lines, line)
		}
		if what := turns[0].row.what; i+1 == len(r.rows) || r.rows[i+1][0].row.what != what {
			fmt.Fprintf(w, "\n## %s\n", what)
			rounds.WriteMarkdown(w, head, lines)
			lines = nil
		}
	}
}

// telling is a number of processors from which on differences between the servers are expected.
const telling = 16

// scaledLegend explains the tables.
func (r *runner) scaledLegend(n int, seed uint64) string {
	text, most := "", r.processors[len(r.processors)-1]
	if most < telling {
		text = fmt.Sprintf(`**%d processors show nothing about many.** This page only shows that the measurement works. It needs
%d or more.

`, most, telling)
	}
	m := measure.ThisMachine()
	return text + fmt.Sprintf(`%s, %d processors, %s. The first ones are %s.

%d rounds, turns of %v, seed %d. Figures are medians.
%s

- The server and its clients run on the same processors, so the server has about half of them. For
  each processor there are %d clients, which are processes and share nothing.
- *Full* and *resumed* work is connections, *kept* work is requests of 1 KB, with answers of 1 KB,
  over connections that stay. *Processor time* is that of the server with its children.
- *To one* is the ratio to the same server on one processor. The processor time grows if processors
  wait for one another's cache lines, and the work for a processor shrinks also if they sleep.
- *%s* has the default number of shards, or that of OSSL_SHARDS. By default it has one on up to
  4 processors, and *%s* is the same server again. *%s* is a process
  for each processor, nginx has a worker for each. Go's own limits are those of crypto/tls.
`, m.Processor, m.CPUs, m.System, firstProcessors(most), n, r.turn, seed, rounds.Legend(n), r.clients, stackOSSL,
		stackOneShard, stackProcesses)
}
