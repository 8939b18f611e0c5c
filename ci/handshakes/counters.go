//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ossl-go/ossl/ci/internal/load"
)

// counters are of processes with all their threads.
type counters struct {
	used                         time.Duration
	voluntary, involuntary, runs int64
}

// minus returns the advance since before. The counts of a thread that has ended are missing, so a
// turn in which one ends has too few; its time is right.
func (c counters) minus(before counters) counters {
	return counters{c.used - before.used, max(0, c.voluntary-before.voluntary), max(0, c.involuntary-before.involuntary),
		max(0, c.runs-before.runs)}
}

// each returns the sample of n connections that took d.
func (c counters) each(n int, d time.Duration) sample {
	by := float64(n)
	return sample{float64(c.used) / by / float64(time.Microsecond), float64(c.voluntary) / by, float64(c.involuntary) / by,
		float64(c.runs) / by, by / d.Seconds()}
}

func readCounters(pids []string) (counters, error) {
	var sum counters
	for _, pid := range pids {
		n, err := strconv.Atoi(pid)
		if err != nil {
			return sum, err
		}
		used, err := load.Clock(load.ProcessClock(n))
		if err != nil {
			return sum, fmt.Errorf("the clock of process %d: %w", n, err)
		}
		sum.used += used
		tasks, err := filepath.Glob("/proc/" + pid + "/task/*")
		if err != nil {
			return sum, err
		}
		for _, task := range tasks {
			status, err := os.ReadFile(task + "/status")
			if err != nil {
				continue // it has just ended
			}
			voluntary, involuntary, err := switches(string(status))
			if err != nil {
				return sum, err
			}
			sum.voluntary += voluntary
			sum.involuntary += involuntary
			stat, err := os.ReadFile(task + "/schedstat")
			if err != nil {
				continue // ended, or a kernel without it
			}
			runs, err := timeslices(string(stat))
			if err != nil {
				return sum, err
			}
			sum.runs += runs
		}
	}
	return sum, nil
}

// switches parses /proc/PID/status.
func switches(status string) (voluntary, involuntary int64, err error) {
	found := 0
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		var to *int64
		switch key {
		case "voluntary_ctxt_switches":
			to = &voluntary
		case "nonvoluntary_ctxt_switches":
			to = &involuntary
		default:
			continue
		}
		if *to, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil {
			return 0, 0, err
		}
		found++
	}
	if found != 2 {
		return 0, 0, fmt.Errorf("no context switches in %q", status)
	}
	return voluntary, involuntary, nil
}

// timeslices parses /proc/PID/schedstat: the time on a processor, the time in the queue, and how
// often it got a processor.
func timeslices(stat string) (int64, error) {
	fields := strings.Fields(stat)
	if len(fields) != 3 {
		return 0, fmt.Errorf("schedstat is %q", stat)
	}
	return strconv.ParseInt(fields[2], 10, 64)
}

// perfCount parses the output of perf stat -x, with one event.
func perfCount(out string) (float64, error) {
	for line := range strings.Lines(out) {
		if fields := strings.Split(line, ","); len(fields) > 2 && strings.Contains(fields[2], "sys_enter") {
			return strconv.ParseFloat(fields[0], 64)
		}
	}
	return 0, fmt.Errorf("perf says %q", out)
}
