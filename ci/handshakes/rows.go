//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// A row is a kind of connection.
type row struct {
	version string // 1.2, 1.3
	key     tlstest.KeyKind
	kind    string // none, full, resumed
	way     string // of resumption
	request bool   // of 1 KB, answered
	slack   bool   // of the Go servers' timers
}

// String is the row's name, as "loaded 1.3 P256 full 1KB".
func (r row) String() string {
	place := "loaded"
	if r.slack {
		place = "slack"
	}
	s := fmt.Sprintf("%s %s %s %s", place, r.version, r.key, r.kind)
	if r.way == byID {
		s += " by id"
	}
	if r.request {
		s += " 1KB"
	}
	return s
}

// allRows returns every row, in the order of the table.
func allRows() []row {
	var rows []row
	for _, request := range []bool{false, true} {
		for _, version := range []string{"1.3", "1.2"} {
			for _, key := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048} {
				r := row{version: version, key: key, way: byTicket, request: request}
				for _, r.kind = range []string{"full", "resumed"} {
					rows = append(rows, r)
				}
			}
		}
	}
	return append(rows, row{version: "1.2", key: tlstest.P256, kind: "resumed", way: byID},
		row{version: "1.2", key: tlstest.RSA2048, kind: "resumed", way: byID},
		row{version: "1.3", key: tlstest.P256, kind: "none", way: byTicket})
}

// selectRows returns the rows whose names match: with a slack, each without it and with it.
func (r *runner) selectRows(pattern *regexp.Regexp) []row {
	rows := allRows()
	if r.slack > 0 {
		for _, row := range allRows() {
			row.slack = true
			rows = append(rows, row)
		}
	}
	return slices.DeleteFunc(rows, func(r row) bool { return !pattern.MatchString(r.String()) })
}

// has reports whether a stack takes part in a row.
func (r row) has(stack string) bool {
	return stack != stackGo || r.way != byID // crypto/tls has no sessions but tickets
}

// A turn is one server's in one row.
type turn struct {
	row   row
	stack string
}

// roundOrder returns a round's turns. Those of a row are neighbours, since they are compared.
func roundOrder(random *rand.Rand, rows []row, stacks []string) []turn {
	var turns []turn
	for _, i := range random.Perm(len(rows)) {
		for _, j := range random.Perm(len(stacks)) {
			if rows[i].has(stacks[j]) {
				turns = append(turns, turn{rows[i], stacks[j]})
			}
		}
	}
	return turns
}
