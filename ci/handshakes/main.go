//go:build linux

// Command handshakes measures the cost of a handshake to a server, full and resumed: the processor
// time that servers on ossl and on crypto/tls, and nginx on the same libssl, take for the
// connections of a client in C. ci/handshake-cpu installs its needs and runs it:
//
//	handshakes -client PROGRAM [-nginx PROGRAM] [-run PROGRAM] [-rounds 7] [-clients 1] [-full 400] [-resumed 800]
//
// It prints a table of medians and asserts no times. It fails if a connection was resumed that
// should not have been, or the reverse, or if nginx and ossl don't use the same libssl.
//
// In each round every server is started anew, serves alone, and the servers that are compared run
// one right after the other.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// The stacks, and the ways to resume.
const (
	stackGo    = "crypto/tls"
	stackOSSL  = "ossl"
	stackNginx = "nginx"

	byTicket = "ticket"
	byID     = "id"
)

// A measurement is a row's.
type measurement struct {
	version string
	kind    tlstest.KeyKind
	way     string
	stack   string
}

func main() {
	var r runner
	flag.StringVar(&r.client, "client", "", "the client `program`")
	flag.StringVar(&r.nginx, "nginx", "", "the nginx `program`; without one it is left out")
	flag.StringVar(&r.librun, "run", "", "start the servers by this `program`, on the OpenSSL that it brings")
	rounds := flag.Int("rounds", 7, "`rounds`, whose medians are printed")
	flag.IntVar(&r.clients, "clients", 1, "`clients` at a time, which share the connections of a round")
	flag.IntVar(&r.full, "full", 400, "full `handshakes` of a round")
	flag.IntVar(&r.resumed, "resumed", 800, "resumed `handshakes` of a round")
	stack := flag.String("serve", "", "be a server on this `stack`, ossl or crypto/tls")
	way := flag.String("way", byTicket, "how the server resumes: ticket or id")
	cert := flag.String("cert", "", "the server's certificate `file`")
	key := flag.String("key", "", "the server's key `file`")
	flag.Parse()
	if flag.NArg() > 0 || *stack == "" && r.client == "" || *rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	var err error
	if *stack != "" {
		err = serve(*stack, *way, *cert, *key)
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = r.measure(ctx, *rounds, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "handshakes:", err)
		os.Exit(1)
	}
}

// measure runs the rounds and prints the table.
func (r *runner) measure(ctx context.Context, rounds int, w io.Writer) (err error) {
	if r.dir, err = os.MkdirTemp("", "ossl-handshakes-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	kinds := []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256}
	if err := r.writeCerts(kinds); err != nil {
		return err
	}
	stacks := []string{stackGo, stackOSSL}
	if r.nginx != "" {
		stacks = append(stacks, stackNginx)
	}
	t := newTable()
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
		for _, kind := range kinds {
			for _, way := range []string{byTicket, byID} {
				for _, stack := range stacks {
					if way == byID && stack == stackGo {
						continue // it has no sessions but tickets
					}
					if err := r.visit(ctx, stack, way, kind, t); err != nil {
						return fmt.Errorf("%s, %s, by %s: %w", stack, kind, way, err)
					}
				}
			}
		}
	}
	fmt.Fprintf(w, "Servers: %s. Microseconds of processor time a connection; medians of %d rounds, each of %d full and %d "+
		"resumed, %d at a time.\n\n", strings.Join(r.names, "; "), rounds, r.full, r.resumed, r.clients)
	t.print(w, stacks)
	return nil
}
