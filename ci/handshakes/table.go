//go:build linux

package main

import (
	"fmt"
	"io"
)

const legend = `us: processor time of the server for a connection (median). Ratios of it: median, and the quartiles,
of the ratios in the same round. c/s: connections a second. 1KB: with a request of 1 KB and its
answer.`

// print writes the table, at most 100 columns wide.
func (r *results) print(w io.Writer, rows []row, stacks []string) {
	fmt.Fprintf(w, "%-14s%6s  %-15s %-15s %-15s%7s\n", "", "us", "to ossl", "to crypto/tls", "to nginx", "c/s")
	for _, row := range rows {
		fmt.Fprintln(w, row)
		for _, stack := range stacks {
			t := turn{row, stack}
			if len(r.samples[t]) == 0 {
				continue
			}
			fmt.Fprintf(w, "  %-12.12s%6.0f ", stack, r.samples.Median(t, micros))
			for _, to := range []string{stackOSSL, stackGo, stackNginx} {
				cell := ""
				if s, ok := r.ratio(t, to); ok && to != stack && (stack != stackGo && stack != stackNginx) {
					cell = fmt.Sprintf("%.2f %.2f-%.2f", s.Median, s.Low, s.High)
				}
				fmt.Fprintf(w, " %-15s", cell)
			}
			fmt.Fprintf(w, "%7.0f\n", r.samples.Median(t, func(s sample) float64 { return s.perSecond }))
		}
	}
}

// writeTSV writes every turn.
func (r *results) writeTSV(w io.Writer, rows []row, stacks []string) {
	fmt.Fprintln(w, "row\tserver\tround\tus\tconnections_per_s")
	for _, row := range rows {
		for _, stack := range stacks {
			t := turn{row, stack}
			for round := range len(r.samples[t]) {
				s := r.samples[t][round]
				fmt.Fprintf(w, "%s\t%s\t%d\t%.2f\t%.0f\n", row, stack, round+1, s.micros, s.perSecond)
			}
		}
	}
}
