//go:build linux

package main

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// The stacks.
const (
	stackOSSL    = "ossl"
	stackStd     = "crypto/tls"       // bare
	stackGo      = "ossl, crypto/tls" // --engine go
	stackNginx   = "nginx"
	stackStunnel = "stunnel"
	stackHitch   = "hitch"
)

// stackAgain is ossl once more.
const stackAgain = "ossl again"

// The roles of servers.
const (
	loaded  = "loaded"         // bare: it does nothing but TLS
	relaxed = "slack"          // the same, with a timer slack
	scaled  = "scaled"         // the same, on a number of processors
	files   = "files"          // ossl serve
	tcp     = "TCP proxy"      // ossl proxy --to HOST:PORT
	reverse = "HTTP proxy"     // ossl proxy --to http://HOST:PORT
	idle    = "an idle client" // ossl serve
)

// The ways to resume.
const (
	byTicket = "ticket"
	byID     = "id"
)

// stacksOf are the servers that are compared in a role, in the order of the table.
var stacksOf = map[string][]string{
	scaled:  {stackOSSL, stackOneShard, stackProcesses, stackStd, stackNginx},
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
	kept1               // HTTP/1.1 requests over kept connections
	kept2               // HTTP/2 requests over kept connections
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
	kind    string // of fresh: none, full, resumed or kept; with none it closes before the handshake
	way     string // of fresh: of resumption

	request int // of fresh and waits: the bytes of a request that each client has had answered; 0 for none

	processors int // of scaled: those that the server and its clients run on
}

// String is the row's name, as "files: kept, HTTP/2" or "loaded 1.3 P256 full".
func (r row) String() string {
	if r.role == scaled {
		return fmt.Sprintf("%s to %d: %s", r.role, r.processors, r.what)
	}
	if r.bare() {
		return r.role + " " + r.what
	}
	return r.role + ": " + r.what
}

// bare reports whether the row's servers do nothing but TLS.
func (r row) bare() bool { return r.role == loaded || r.role == relaxed || r.role == scaled }

// perByte reports whether the row's work is counted in bytes, rather than in requests.
func (r row) perByte() bool { return r.demand == large }

// stacks returns the servers of a row, in the order of the table.
func (r *runner) stacks(row row) []string {
	if !row.bare() || row.role == scaled {
		return stacksOf[row.role]
	}
	stacks := append([]string{stackOSSL, stackStd}, r.variants...)
	if row.way == byID { // crypto/tls has no sessions but tickets
		stacks = slices.Delete(stacks, 1, 2)
	}
	if r.programs[stackNginx] != "" {
		stacks = append(stacks, stackNginx)
	}
	return stacks
}

// bare reports whether this is about bare servers, as there is no 'ossl serve'.
func (r *runner) bare() bool { return r.programs[stackOSSL] == "" }

// bareRows returns the rows of bare servers.
func bareRows(role string) []row {
	add := func(version string, key tlstest.KeyKind, kind, way string, request int) row {
		what := fmt.Sprintf("%s %s %s", version, key, kind)
		if way == byID {
			what += " by id"
		}
		if request > 0 {
			what += " 1KB"
		}
		return row{role: role, what: what, demand: fresh, key: key, version: version, kind: kind, way: way, request: request}
	}
	var rows []row
	for _, request := range []int{0, bareRequest} {
		for _, version := range []string{"1.3", "1.2"} {
			for _, key := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048} {
				for _, kind := range []string{"full", "resumed"} {
					rows = append(rows, add(version, key, kind, byTicket, request))
				}
			}
		}
	}
	return append(rows, add("1.2", tlstest.P256, "resumed", byID, 0), add("1.2", tlstest.RSA2048, "resumed", byID, 0),
		add("1.3", tlstest.P256, "none", byTicket, 0))
}

// allRows returns the rows in the order of the table.
func (r *runner) allRows() []row {
	switch {
	case len(r.processors) > 0:
		return scaledRows(r.processors)
	case r.bare() && r.slack > 0:
		return append(bareRows(loaded), bareRows(relaxed)...)
	case r.bare():
		return bareRows(loaded)
	}
	return serverRows()
}

func serverRows() []row {
	newConnections := func(role string, key tlstest.KeyKind, version, kind string) row {
		what := fmt.Sprintf("new, %s, TLS %s, %s", keyNames[key], version, kind)
		return row{role: role, what: what, demand: fresh, key: key, version: version, kind: kind, way: byTicket,
			request: requestBytes}
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
		row{role: idle, what: "after a request", demand: waits, key: tlstest.P256, request: requestBytes})
}

// requestBytes is the size of a request of a new connection.
const requestBytes = 128

// roles are all roles, in the order of the table.
var roles = []string{files, reverse, tcp, idle}

var keyNames = map[tlstest.KeyKind]string{tlstest.RSA2048: "RSA-2048", tlstest.P256: "P-256"}

// selectRows returns the rows whose names match: the rows of turns, and the rows of idle clients.
func (r *runner) selectRows(pattern *regexp.Regexp) (turns, memory []row) {
	for _, row := range r.allRows() {
		switch {
		case !pattern.MatchString(row.String()):
		case row.demand == waits:
			memory = append(memory, row)
		default:
			turns = append(turns, row)
		}
	}
	return turns, memory
}

// A turn is one server's in one row.
type turn struct {
	row   row
	stack string
}
