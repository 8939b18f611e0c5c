//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// The stacks.
const (
	stackOSSL    = "ossl"
	stackGo      = "ossl, crypto/tls" // --engine go
	stackNginx   = "nginx"
	stackStunnel = "stunnel"
	stackHitch   = "hitch"
)

// The roles of servers.
const (
	files   = "files"          // ossl serve
	tcp     = "TCP proxy"      // ossl proxy --to HOST:PORT
	reverse = "HTTP proxy"     // ossl proxy --to http://HOST:PORT
	idle    = "an idle client" // ossl serve
)

// stacksOf are the servers that are compared in a role, in the order of the table.
var stacksOf = map[string][]string{
	files:   {stackOSSL, stackGo, stackNginx},
	tcp:     {stackOSSL, stackGo, stackStunnel, stackHitch},
	reverse: {stackOSSL, stackGo, stackNginx},
	idle:    {stackOSSL, stackGo, stackNginx},
}

// A demand is a kind of clients' work.
type demand int

// The demands.
const (
	fresh demand = iota // new connections, each with a request
	kept1               // requests over kept connections of HTTP/1.1
	kept2               // the same of HTTP/2
	large               // files of 10 MB
	waits               // clients that wait
)

// A row is a measurement.
type row struct {
	role   string
	what   string
	demand demand
	key    tlstest.KeyKind

	version string // of fresh: 1.2 or 1.3
	kind    string // of fresh: full or resumed

	request bool // of waits: each client has had a request answered
}

// String is the row's name, as "files: kept, HTTP/2".
func (r row) String() string { return r.role + ": " + r.what }

// perByte reports whether the row's work is counted in bytes, rather than in requests.
func (r row) perByte() bool { return r.demand == large }

// stacks returns the servers of the row.
func (r row) stacks() []string { return stacksOf[r.role] }

func allRows() []row {
	newConnections := func(role string, key tlstest.KeyKind, version, kind string) row {
		what := fmt.Sprintf("new, %s, TLS %s, %s", keyNames[key], version, kind)
		return row{role: role, what: what, demand: fresh, key: key, version: version, kind: kind}
	}
	rows := []row{
		newConnections(files, tlstest.RSA2048, "1.3", "full"),
		newConnections(files, tlstest.P256, "1.3", "full"),
		newConnections(files, tlstest.P256, "1.3", "resumed"),
		newConnections(files, tlstest.P256, "1.2", "resumed"),
		newConnections(tcp, tlstest.P256, "1.3", "full"),
		newConnections(tcp, tlstest.P256, "1.3", "resumed"),
		newConnections(reverse, tlstest.P256, "1.3", "full"),
	}
	for _, role := range []string{files, tcp, reverse} {
		kept := []row{
			{role: role, what: "kept, HTTP/1.1, 1 KB", demand: kept1, key: tlstest.P256},
			{role: role, what: "kept, HTTP/2, 1 KB", demand: kept2, key: tlstest.P256},
			{role: role, what: "10 MB", demand: large, key: tlstest.P256},
		}
		if role == tcp { // the backend speaks HTTP/1.1 alone
			kept = slices.Delete(kept, 1, 2)
			kept[0].what = "kept, 1 KB"
		}
		rows = append(rows, kept...)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return slices.Index(roles, a.role) - slices.Index(roles, b.role) })
	return append(rows, row{role: idle, what: "after its handshake", demand: waits, key: tlstest.P256},
		row{role: idle, what: "after a request", demand: waits, key: tlstest.P256, request: true})
}

// roles are all roles, in the order of the table.
var roles = []string{files, reverse, tcp, idle}

var keyNames = map[tlstest.KeyKind]string{tlstest.RSA2048: "RSA-2048", tlstest.P256: "P-256"}

// selectRows returns the rows whose names match: those of turns, and those of idle clients.
func selectRows(pattern *regexp.Regexp) (turns, memory []row) {
	for _, r := range allRows() {
		switch {
		case !pattern.MatchString(r.String()):
		case r.demand == waits:
			memory = append(memory, r)
		default:
			turns = append(turns, r)
		}
	}
	return turns, memory
}

// A turn is one server's in one row.
type turn struct {
	row   row
	stack string
}

// roundOrder returns a round's turns. Those of a row are neighbours, since they are compared.
func roundOrder(random *rand.Rand, rows []row) []turn {
	var turns []turn
	for _, i := range random.Perm(len(rows)) {
		stacks := rows[i].stacks()
		for _, j := range random.Perm(len(stacks)) {
			turns = append(turns, turn{rows[i], stacks[j]})
		}
	}
	return turns
}
