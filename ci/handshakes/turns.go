//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/ossl-go/ossl/ci/internal/load"
)

// requestSize is the size of requests and of the bodies of answers.
const requestSize = 1024

// take does a turn and adds its sample.
func (r *runner) take(ctx context.Context, t turn, round int, res *results) error {
	if t.row.place != loaded {
		s, err := r.takeCold(ctx, t)
		if err == nil {
			res.samples.Add(t, round, s)
		}
		return err
	}
	s := r.servers[serverKey{t.stack, t.row.key, t.row.way}]
	pids := s.processes()
	var before, after counters
	n, took, err := r.visit(t.row, s, nil).Run(ctx, 3*patience, func() (err error) {
		before, err = readCounters(pids)
		return err
	})
	if err != nil {
		return err
	}
	if after, err = readCounters(pids); err != nil {
		return err
	}
	res.samples.Add(t, round, after.minus(before).each(n, took))
	return nil
}

// visit returns the clients' visit to a server. A wrapper starts the client, if there is one.
func (r *runner) visit(row row, s *server, wrapper []string) load.Visit {
	v := load.Visit{Program: r.client, Port: s.port, CA: r.file("ca.pem"), Version: row.version, Way: row.way, Kind: row.kind,
		Clients: r.clients, Most: r.full, Turn: r.turn, Wrapper: wrapper}
	if row.kind == "resumed" {
		v.Most = r.resumed
	}
	if row.request {
		v.Port, v.Request = s.requestPort, requestSize
	}
	return v
}

// takeCold does a turn of a row without a network.
func (r *runner) takeCold(ctx context.Context, t turn) (sample, error) {
	s := r.servers[serverKey{t.stack, t.row.key, t.row.way}]
	most := r.full
	if t.row.kind == "resumed" {
		most = r.resumed
	}
	ctx, cancel := context.WithTimeout(ctx, r.turn+3*patience)
	defer cancel()
	args := append([]string{"-cold", "-row", t.row.String(), "-turn", r.turn.String(), "-full", strconv.Itoa(most), "-evict",
		strconv.FormatFloat(r.evict, 'g', -1, 64)}, s.args...)
	cmd := r.command(ctx, s.program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return sample{}, err
	}
	var n int
	var used time.Duration
	if _, err := fmt.Sscan(string(out), &n, &used); err != nil || n < 1 {
		return sample{}, fmt.Errorf("it says %q", out)
	}
	return sample{micros: float64(used) / float64(n) / float64(time.Microsecond)}, nil
}

// count counts the system calls of each server in each row, in one more turn, since perf makes them
// slower. Without perf, or if the kernel doesn't let it, the column stays empty.
func (r *runner) count(ctx context.Context, rows []row, res *results) error {
	perf, err := exec.LookPath("perf")
	if err != nil {
		fmt.Fprintln(os.Stderr, "there is no perf, so system calls are not counted")
		return nil
	}
	file := r.file("perf")
	event := []string{perf, "stat", "-x,", "-o", file, "-e", "raw_syscalls:sys_enter"}
	if out, err := exec.CommandContext(ctx, perf, append(event[1:], "true")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "perf can't count system calls: %v: %s\n", err, out)
		return ctx.Err()
	}
	for _, row := range rows {
		for _, stack := range r.stacks() {
			if row.place != loaded || !row.has(stack) {
				continue
			}
			s := r.servers[serverKey{stack, row.key, row.way}]
			wrapper := append(event[:len(event):len(event)], "-p", strings.Join(s.processes(), ","))
			visit := r.visit(row, s, wrapper)
			n, _, err := visit.Run(ctx, 3*patience, func() error { return nil })
			if err != nil {
				return fmt.Errorf("%s, %s, with perf: %w", stack, row, err)
			}
			out, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			calls, err := perfCount(string(out))
			if err != nil {
				return err
			}
			res.syscalls[turn{row, stack}] = calls / float64(n+visit.WarmUps())
		}
	}
	return nil
}
