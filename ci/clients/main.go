// Command clients shows that sessions are resumed by the clients that people use: it starts HTTPS
// servers, visits each several times with curl, Java, BearSSL and others, and counts on the server
// the connections that resumed.
//
// Usage, from the module's root folder (ci/resumption installs the clients first and then does
// this):
//
//	go run ./ci/clients [-n 10] [-requests 100] [-only curl,node] [-may-lack nss]
//
// It prints two tables. The first shows for each client, TLS version, and way of keeping sessions
// how many of the connections that could resume did resume. The second is the test of the ESP8266's
// server with a session cache: -requests HTTPS requests with a new session each, and as many that
// reuse one; the times are printed but not checked.
//
// It fails if a client doesn't behave as the table of clients specifies: each connection that must
// resume does, and no other. The control is a crypto/tls server, which has no session IDs: clients
// that have nothing else never resume there. Clients that can report their resumed connections must
// agree with the server. A client that isn't installed is a failure too, unless -may-lack names it.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// visitTimeout bounds a client's connections to one server.
const visitTimeout = time.Minute

func main() {
	n := flag.Int("n", 10, "in the first table, the `connections` that may resume")
	requests := flag.Int("requests", 100, "in the second table, the `requests` without and with a session")
	only := flag.String("only", "", "run these clients only: names separated by commas")
	mayLack := flag.String("may-lack", "", "leave these clients out if they are not installed: names separated by commas")
	flag.Parse()
	if flag.NArg() > 0 || *n < 1 || *requests < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failures, err := run(ctx, *n, *requests, list(*only), list(*mayLack))
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
	for _, f := range failures {
		fmt.Fprintln(os.Stderr, "clients: FAILED:", f)
	}
	if len(failures) > 0 {
		os.Exit(1)
	}
}

func list(names string) []string {
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
}

func run(ctx context.Context, n, requests int, only, mayLack []string) (failures []string, err error) {
	lib, err := ossl.Library()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ossl-clients-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	found, missing, err := findClients(ctx, dir, only)
	if err != nil {
		return nil, err
	}
	for _, m := range missing {
		if slices.Contains(mayLack, m.name) {
			fmt.Printf("left out: %s: %v\n", m.name, m.err)
		} else {
			failures = append(failures, fmt.Sprintf("%s: %v", m.name, m.err))
		}
	}
	fmt.Printf("server: %s\n", lib.VersionText)
	for _, c := range found {
		fmt.Printf("%s: %s\n", c.name, c.version)
	}
	fmt.Println()
	failures = append(failures, matrix(ctx, found, n)...)
	fmt.Println()
	return append(failures, hundreds(ctx, found, requests)...), ctx.Err()
}

// matrix prints the first table.
func matrix(ctx context.Context, clients []*client, n int) (failures []string) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "client\tTLS")
	for _, k := range kinds {
		fmt.Fprintf(w, "\t%s", k)
	}
	fmt.Fprintln(w)
	for _, c := range clients {
		for _, version := range c.versions() {
			fmt.Fprintf(w, "%s\t%s", c.name, version)
			for _, k := range kinds {
				r, err := check(ctx, c, k, version, tlstest.P256, 0, n)
				fmt.Fprintf(w, "\t%d of %d", r.resumed, r.could)
				if err != nil {
					fmt.Fprint(w, " WRONG")
					failures = append(failures, fmt.Sprintf("%s, TLS %s, %s: %v", c.name, version, k, err))
				}
			}
			fmt.Fprintln(w)
		}
	}
	w.Flush()
	return failures
}

// hundreds prints the second table.
func hundreds(ctx context.Context, clients []*client, requests int) (failures []string) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "client\tTLS\tkey\tserver\tresumed\t%d new, s\t%d reused, s\tratio\n", requests, requests)
	for _, c := range clients {
		if !c.hundreds {
			continue
		}
		for _, version := range c.versions() {
			for _, key := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256} {
				for _, k := range []kind{cacheAlone, tickets} {
					if does, _ := c.resumes(k, version); !does {
						continue
					}
					r, err := check(ctx, c, k, version, key, requests, requests)
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d of %d\t%.3f\t%.3f\t%.1f", c.name, version, key, k, r.resumed, r.could,
						r.fresh.Seconds(), r.reused.Seconds(), r.fresh.Seconds()/r.reused.Seconds())
					if err != nil {
						fmt.Fprint(w, "\tWRONG")
						failures = append(failures, fmt.Sprintf("%s, TLS %s, %s, %s, %d requests: %v", c.name, version, key, k, requests, err))
					}
					fmt.Fprintln(w)
				}
			}
		}
	}
	w.Flush()
	return failures
}

// A result is of one client's visit to one server.
type result struct {
	resumed, could int // connections, as the server saw them
	told
}

// check makes a client visit a server of its own, and compares the connections that the server saw
// with the table of clients.
func check(ctx context.Context, c *client, k kind, version string, key tlstest.KeyKind, fresh, reused int) (r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, visitTimeout)
	defer cancel()
	s, err := start(k, version, key)
	if err != nil {
		return r, err
	}
	v := &visit{port: s.port(), dir: c.dir, version: version, fresh: fresh, reused: reused}
	r.told, err = c.visit(ctx, v)
	states, serr := s.stop(ctx)
	if err == nil {
		err = serr
	}
	if err != nil {
		return r, err
	}
	want := c.expect(v)
	if len(states) != len(want) {
		return r, fmt.Errorf("%d connections, not %d", len(states), len(want))
	}
	does, asked := c.resumes(k, version)
	wrong := 0
	for i, state := range states {
		if state.DidResume {
			r.resumed++
		}
		if want[i] {
			r.could++
		}
		if asked && state.DidResume != (want[i] && does) {
			wrong++
		}
		if !state.HandshakeComplete || tls.VersionName(state.Version) != "TLS "+version {
			return r, fmt.Errorf("connection %d: handshake complete: %v, %s", i+1, state.HandshakeComplete,
				tls.VersionName(state.Version))
		}
	}
	if r.told.resumed != unknown && r.told.resumed != r.resumed {
		return r, fmt.Errorf("%d connections resumed, and the client says %d", r.resumed, r.told.resumed)
	}
	if wrong > 0 {
		return r, fmt.Errorf("%d of %d connections resumed, %d not as expected: this client and server can resume: %v", r.resumed,
			r.could, wrong, does)
	}
	return r, nil
}
