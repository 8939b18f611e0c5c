//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// A table holds the results in the order in which they came first.
type table struct {
	order []measurement
	cells map[measurement]*cell
}

// A cell has a value for each round, for connections without a handshake, with a full one, and with
// a resumed one.
type cell struct{ none, full, resumed []time.Duration }

func newTable() *table { return &table{cells: map[measurement]*cell{}} }

func (t *table) add(m measurement, none, full, resumed time.Duration) {
	c := t.cells[m]
	if c == nil {
		c = new(cell)
		t.cells[m], t.order = c, append(t.order, m)
	}
	c.none, c.full, c.resumed = append(c.none, none), append(c.full, full), append(c.resumed, resumed)
}

// median returns the median in microseconds.
func median(d []time.Duration) float64 {
	d = slices.Sorted(slices.Values(d))
	n := len(d)
	return float64(d[(n-1)/2]+d[n/2]) / 2 / float64(time.Microsecond)
}

// print writes the table as Markdown, servers that are compared one below the other.
func (t *table) print(w io.Writer, stacks []string) {
	fmt.Fprintln(w, "| TLS, key, resumed by | server | no handshake | full | resumed | full : resumed "+
		"| full / crypto/tls | resumed / crypto/tls | full / nginx | resumed / nginx |")
	fmt.Fprintln(w, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	done := map[measurement]bool{}
	for _, first := range t.order {
		for _, stack := range stacks {
			m := first
			m.stack = stack
			c := t.cells[m]
			if c == nil || done[m] {
				continue
			}
			done[m] = true
			full, resumed := median(c.full), median(c.resumed)
			fmt.Fprintf(w, "| %s, %s, %s | %s | %.0f | %.0f | %.0f | %.1f |", m.version, m.kind, m.way, stack, median(c.none), full,
				resumed, full/resumed)
			for _, other := range []string{stackGo, stackNginx} {
				m.stack = other
				o := t.cells[m]
				if o == nil || other == stack {
					fmt.Fprint(w, " – | – |")
					continue
				}
				fmt.Fprintf(w, " %.2f | %.2f |", full/median(o.full), resumed/median(o.resumed))
			}
			fmt.Fprintln(w)
		}
	}
}
