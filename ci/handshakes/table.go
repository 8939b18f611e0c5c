//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
)

const legend = `us: processor time of the server for a connection (median). Ratios of it: median, and the quartiles,
of the ratios in the same round. A connection's: sys, system calls (perf); vol, voluntary context
switches, each of which is one wake-up; inv, involuntary ones; runs, how often one of the server's
threads got a processor. c/s: connections a second. 1KB: with a request of 1 KB and its answer.`

// print writes the table, at most 100 columns wide.
func (r *results) print(w io.Writer, rows []row, stacks []string) {
	fmt.Fprintf(w, "%-14s%6s  %-15s %-15s %-15s%6s%5s%5s%5s%7s\n", "", "us", "to ossl", "to crypto/tls", "to nginx", "sys", "vol",
		"inv", "runs", "c/s")
	for _, row := range rows {
		fmt.Fprintln(w, row)
		for _, stack := range stacks {
			t := turn{row, stack}
			if len(r.samples[t]) == 0 {
				continue
			}
			line := fmt.Sprintf("  %-12.12s%6.0f ", stack, r.samples.Median(t, micros))
			for _, to := range []string{stackOSSL, stackGo, stackNginx} {
				cell := ""
				if s, ok := r.ratio(t, to); ok && to != stack && (stack != stackGo && stack != stackNginx) {
					cell = fmt.Sprintf("%.2f %.2f-%.2f", s.Median, s.Low, s.High)
				}
				line += fmt.Sprintf(" %-15s", cell)
			}
			if row.place == loaded {
				sys := ""
				if n, ok := r.syscalls[t]; ok {
					sys = fmt.Sprintf("%.1f", n)
				}
				line += fmt.Sprintf("%6s%5.1f%5.1f%5.1f%7.0f", sys,
					r.samples.Median(t, func(s sample) float64 { return s.voluntary }),
					r.samples.Median(t, func(s sample) float64 { return s.involuntary }),
					r.samples.Median(t, func(s sample) float64 { return s.runs }),
					r.samples.Median(t, func(s sample) float64 { return s.perSecond }))
			}
			fmt.Fprintln(w, strings.TrimRight(line, " "))
		}
	}
}

// writeTSV writes every turn.
func (r *results) writeTSV(w io.Writer, rows []row, stacks []string) {
	fmt.Fprintln(w, "row\tserver\tround\tus\tvoluntary\tinvoluntary\truns\tconnections_per_s\tsyscalls")
	for _, row := range rows {
		for _, stack := range stacks {
			t := turn{row, stack}
			sys := ""
			if n, ok := r.syscalls[t]; ok {
				sys = fmt.Sprintf("%.2f", n)
			}
			for round := range len(r.samples[t]) {
				s := r.samples[t][round]
				fmt.Fprintf(w, "%s\t%s\t%d\t%.2f\t%.3f\t%.3f\t%.3f\t%.0f\t%s\n", row, stack, round+1, s.micros, s.voluntary,
					s.involuntary, s.runs, s.perSecond, sys)
			}
		}
	}
}
