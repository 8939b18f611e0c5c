//go:build linux

// Command handshakes measures the cost of a connection to servers: ossl, crypto/tls, nginx on the
// same libssl, and other builds of ossl. ci/handshake-cpu installs its needs and runs it:
//
//	handshakes -client PROGRAM [-nginx PROGRAM] [-run PROGRAM] [-variant NAME=PROGRAM]… [FLAGS]
//
// The machine's speed changes by the minute, and all servers run on the processors of their
// clients. So all servers live at the same time and take turns of half a second: in each round the
// rows are in a random order, and in each row the servers are. A ratio is the median of the ratios
// of turns that followed each other in one round, with the quartiles. -aa adds the same ossl once
// more: where its ratio is not 1.00 within the quartiles, no other ratio is to be believed.
//
// It asserts no times. It fails if a connection was resumed that should not have been, or the
// reverse, or if nginx and ossl don't use the same libssl.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// The stacks, and the ways to resume.
const (
	stackGo    = "crypto/tls"
	stackOSSL  = "ossl"
	stackNginx = "nginx"
	stackAgain = "ossl again" // of -aa

	byTicket = "ticket"
	byID     = "id"
)

// flags are the command line, without the runner's.
type flags struct {
	rounds  int
	rows    string
	figures string
	tsv     string
	aa      bool
	seed    uint64
	serve   serving
}

func parse(args []string, usage io.Writer) (r *runner, f flags, err error) {
	r = &runner{}
	set := flag.NewFlagSet("handshakes", flag.ContinueOnError)
	set.SetOutput(usage)
	set.StringVar(&r.client, "client", "", "the client `program`")
	set.StringVar(&r.nginx, "nginx", "", "the nginx `program`; without one it is left out")
	set.StringVar(&r.librun, "run", "", "start the servers by this `program`, on the OpenSSL that it brings")
	variants := "another ossl, `NAME=PROGRAM`: this command, built from other sources; may be repeated"
	set.Func("variant", variants, func(s string) error {
		name, program, ok := strings.Cut(s, "=")
		if !ok || name == "" || program == "" {
			return fmt.Errorf("%q is not NAME=PROGRAM", s)
		}
		return r.addVariant(name, program)
	})
	set.BoolVar(&f.aa, "aa", false, "measure this ossl twice")
	set.IntVar(&f.rounds, "rounds", 15, "`rounds`, in which each server has one turn in each row")
	set.DurationVar(&r.turn, "turn", 500*time.Millisecond, "the `time` of a turn")
	set.DurationVar(&r.slack, "slack", 0,
		"each row once more, with this timer `slack` of ossl's and crypto/tls's servers: 'ossl serve' sets 2ms")
	set.IntVar(&r.clients, "clients", 16, "`clients` at a time")
	set.IntVar(&r.full, "full", 0, "at most so many full `handshakes` in a turn; 0 for no limit but the time")
	set.IntVar(&r.resumed, "resumed", 0, "the same of resumed `handshakes`")
	set.StringVar(&f.rows, "rows", "", "only rows whose name matches this `regexp`, as '^loaded 1.3 P256 full'")
	set.StringVar(&f.figures, "figures", "",
		"write loaded-VERSION.md into this `folder`, named for the libssl")
	set.StringVar(&f.tsv, "tsv", "", "write each turn into this `file`")
	set.Uint64Var(&f.seed, "seed", 0, "the `seed` of the turns' order; 0 for a new one")
	set.StringVar(&f.serve.stack, "serve", "", "be a server on this `stack`, ossl or crypto/tls")
	set.StringVar(&f.serve.way, "way", byTicket, "how the server resumes: ticket or id")
	set.StringVar(&f.serve.cert, "cert", "", "the server's certificate `file`")
	set.StringVar(&f.serve.key, "key", "", "the server's key `file`")
	if err := set.Parse(args); err != nil {
		return nil, f, err
	}
	switch {
	case set.NArg() > 0:
		return nil, f, fmt.Errorf("unknown argument %q", set.Arg(0))
	case f.serve.stack == "" && r.client == "":
		return nil, f, fmt.Errorf("-client or -serve is needed")
	case f.rounds < 1 || r.clients < 1 || r.full < 0 || r.resumed < 0 || r.turn < time.Millisecond || r.slack < 0:
		return nil, f, fmt.Errorf("a number is too small")
	}
	if f.aa {
		self, err := os.Executable()
		if err != nil {
			return nil, f, err
		}
		return r, f, r.addVariant(stackAgain, self)
	}
	return r, f, nil
}

func main() {
	r, f, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "handshakes:", err)
		os.Exit(2)
	}
	switch {
	case f.serve.stack != "":
		err = serve(f.serve)
	default:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = r.measure(ctx, f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "handshakes:", err)
		os.Exit(1)
	}
}

// measure runs the rounds and prints the table.
func (r *runner) measure(ctx context.Context, f flags) (err error) {
	pattern, err := regexp.Compile(f.rows)
	if err != nil {
		return err
	}
	rows := r.selectRows(pattern)
	if len(rows) == 0 {
		return fmt.Errorf("no row matches %q", f.rows)
	}
	if f.seed == 0 {
		f.seed = rand.Uint64()
	}
	if r.dir, err = os.MkdirTemp("", "ossl-handshakes-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	defer func() {
		if stopped := r.stopAll(); err == nil {
			err = stopped
		}
	}()
	if err := r.startAll(rows); err != nil {
		return err
	}
	res := newResults()
	order := rand.New(rand.NewPCG(f.seed, 0))
	for round := range f.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, f.rounds)
		for _, t := range roundOrder(order, rows, r.stacks()) {
			s, err := r.take(ctx, t)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", t.stack, t.row, err)
			}
			res.samples.Add(t, round, s)
		}
	}
	head := fmt.Sprintf("Servers: %s.\n%d rounds, turns of %v, %d clients, seed %d.\n%s\n",
		strings.Join(r.names, "; "), f.rounds, r.turn, r.clients, f.seed, legend)
	if f.tsv != "" {
		if err := writeFile(f.tsv, func(w io.Writer) { res.writeTSV(w, rows, r.stacks()) }); err != nil {
			return err
		}
	}
	if r.slack > 0 {
		head += fmt.Sprintf("slack: the timer slack of ossl's and crypto/tls's servers is %v.\n", r.slack)
	}
	if f.figures != "" {
		return writeFigures(filepath.Join(f.figures, "loaded"), r.version(), head, rows, r.stacks(), res)
	}
	fmt.Println(head)
	res.print(os.Stdout, rows, r.stacks())
	return nil
}

// version is of ossl's library, as 3.0.
func (r *runner) version() string {
	for _, name := range r.names {
		if v := regexp.MustCompile(`^OpenSSL (\d+\.\d+)`).FindStringSubmatch(name); v != nil {
			return v[1]
		}
	}
	return "unknown"
}

func writeFigures(name, version, head string, rows []row, stacks []string, res *results) error {
	return writeFile(name+"-"+version+".md", func(w io.Writer) {
		fmt.Fprintf(w, "<!-- Written by ci/handshake-cpu -figures docs/figures: run it again rather than edit this. -->\n\n"+
			"# Servers under load, OpenSSL %s\n\n```text\n%s\n", version, head)
		res.print(w, rows, stacks)
		fmt.Fprintln(w, "```")
	})
}

func writeFile(name string, write func(io.Writer)) error {
	var b strings.Builder
	write(&b)
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "wrote", name)
	return nil
}
