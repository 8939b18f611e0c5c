//go:build linux

// Command load loads servers, and compares their speed and processor time. ci/handshake-cpu and
// ci/serve-load install its needs and run it:
//
//	load -client PROGRAM [-nginx PROGRAM] [-variant NAME=PROGRAM]… [FLAGS]
//	load -client PROGRAM -nginx PROGRAM -processors NUMBERS [FLAGS]
//	load -client PROGRAM -nginx PROGRAM -ossl PROGRAM -stunnel PROGRAM … [FLAGS]
//
// The first form measures bare servers, which do nothing but TLS: ossl, crypto/tls, nginx, and other
// builds of ossl. The second measures some of them on different numbers of processors (ci/scale). The
// third measures 'ossl serve' and 'ossl proxy', the same with --engine go, nginx, stunnel and hitch.
//
// The machine's speed changes by the minute, and all servers run on the processors of their clients.
// So all servers live at the same time and take turns, as package rounds describes.
//
// It asserts no times. It fails if a request fails, if a connection was resumed that should not have
// been, or the reverse, or if servers don't use the same libssl, suite and group.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

// flags are the command line, without the runner's.
type flags struct {
	rounds  int
	rows    string
	figures string
	tsv     string
	seed    uint64
	serve   serving
	library bool
}

func parse(args []string, usage io.Writer) (r *runner, f flags, err error) {
	r = &runner{programs: map[string]string{}, numbers: map[turn]int{}}
	set := flag.NewFlagSet("load", flag.ContinueOnError)
	set.SetOutput(usage)
	others := map[string]string{"stunnel": stackStunnel, "hitch": stackHitch, "wrk": wrk, "h2load": h2load}
	names := map[string]string{"ossl": stackOSSL, "nginx": stackNginx, "client": clientC}
	for _, programs := range []map[string]string{names, others} {
		for name, stack := range programs {
			set.Func(name, "the `program`", func(s string) error {
				r.programs[stack] = s
				return nil
			})
		}
	}
	set.StringVar(&r.librun, "run", "", "start the servers by this `program`, on the OpenSSL that it brings")
	variants := "another ossl, `NAME=PROGRAM`: this command, built from other sources; may be repeated"
	set.Func("variant", variants, func(s string) error {
		name, program, _ := strings.Cut(s, "=")
		return r.addVariant(name, program)
	})
	set.Func("processors", "instead measure bare servers on these `numbers` of processors, as 1,2,4", r.setProcessors)
	aa := set.Bool("aa", false, "measure this ossl twice")
	set.IntVar(&f.rounds, "rounds", 7, "`rounds`, in which each server has one turn in each row")
	set.DurationVar(&r.turn, "turn", time.Second, "the `time` of a turn; wrk's are of whole seconds, at least one")
	set.DurationVar(&r.slack, "slack", 0,
		"each row once more, with this timer `slack` of bare servers in Go: 'ossl serve' sets 2ms")
	set.IntVar(&r.clients, "clients", 16, "`clients` at a time that make new connections; with -processors, for each of them")
	set.IntVar(&r.full, "full", 0, "at most so many new `connections` in a turn; 0 for no limit but the time")
	set.IntVar(&r.resumed, "resumed", 0, "the same of resumed `connections`")
	set.IntVar(&r.idle, "idle", 10_000, "idle `clients`")
	set.StringVar(&f.rows, "rows", "", "only rows whose name matches this `regexp`, as '^loaded 1.3 P256 full' or '^TCP proxy: new'")
	set.StringVar(&f.figures, "figures", "",
		"write loaded-VERSION.md or serve-load-VERSION.md into this `folder`, named for the libssl")
	set.StringVar(&f.tsv, "tsv", "", "write each turn into this `file`")
	set.Uint64Var(&f.seed, "seed", 0, "the `seed` of the turns' order; 0 for a new one")
	set.BoolVar(&f.library, "library", false, "print the version of OpenSSL, and do nothing else")
	set.StringVar(&f.serve.stack, "serve", "", "be a bare server on this `stack`, ossl or crypto/tls")
	set.StringVar(&f.serve.way, "way", byTicket, "how the server resumes: ticket or id")
	set.StringVar(&f.serve.cert, "cert", "", "the server's certificate `file`")
	set.StringVar(&f.serve.key, "key", "", "the server's key `file`")
	set.BoolVar(&f.serve.shared, "shared", false, "share the ports and the ticket key with other such servers")
	set.StringVar(&f.serve.ports, "ports", "0,0", "the server's `ports`; the second is for connections with requests")
	if err := set.Parse(args); err != nil {
		return nil, f, err
	}
	r.programs[stackGo] = r.programs[stackOSSL]
	if set.NArg() > 0 {
		return nil, f, fmt.Errorf("unknown argument %q", set.Arg(0))
	}
	if f.library || f.serve.stack != "" {
		return r, f, nil
	}
	if f.rounds < 1 || r.clients < 1 || r.idle < 1 || r.full < 0 || r.resumed < 0 || r.turn < 10*time.Millisecond || r.slack < 0 {
		return nil, f, errors.New("a number is too small")
	}
	needed := []string{clientC}
	if len(r.processors) > 0 {
		if !r.bare() || r.slack > 0 || len(r.variants) > 0 || *aa {
			return nil, f, errors.New("-processors can't be given with -ossl, -slack, -variant and -aa")
		}
		needed = append(needed, stackNginx)
	}
	if !r.bare() {
		needed = append(needed, stackNginx, stackStunnel, stackHitch, wrk, h2load)
	}
	for _, name := range needed {
		if r.programs[name] == "" {
			return nil, f, fmt.Errorf("-%s is missing", name)
		}
	}
	if *aa {
		self, err := os.Executable()
		if err != nil {
			return nil, f, err
		}
		return r, f, r.addVariant(stackAgain, self)
	}
	return r, f, nil
}

// addVariant adds another build of this program.
func (r *runner) addVariant(name, program string) error {
	if name == "" || program == "" {
		return errors.New("it is not NAME=PROGRAM")
	}
	if slices.Contains([]string{stackStd, stackOSSL, stackNginx}, name) || r.programs[name] != "" {
		return fmt.Errorf("the name %q is taken", name)
	}
	r.variants = append(r.variants, name)
	r.programs[name] = program
	return nil
}

func main() {
	r, f, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	switch {
	case f.library:
		var lib ossl.LibraryInfo
		if lib, err = ossl.Library(); err == nil {
			fmt.Println(lib.VersionText)
		}
	case f.serve.stack != "":
		err = serve(f.serve)
	default:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = r.measure(ctx, f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// measure runs the rounds and prints the tables.
func (r *runner) measure(ctx context.Context, f flags) (err error) {
	pattern, err := regexp.Compile(f.rows)
	if err != nil {
		return err
	}
	rows, memory := r.selectRows(pattern)
	if len(rows)+len(memory) == 0 {
		return fmt.Errorf("no row matches %q", f.rows)
	}
	if len(memory) > 0 {
		if err := checkIdle(r.idle); err != nil {
			return err
		}
	}
	if f.seed == 0 {
		f.seed = rand.Uint64()
	}
	if r.dir, err = os.MkdirTemp("", "ossl-load-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	if err := r.prepare(); err != nil {
		return err
	}
	version, names, err := r.versions(ctx)
	if err != nil {
		return err
	}
	if !r.bare() {
		if err := r.checkOffer(ctx); err != nil {
			return err
		}
	}
	res := results{memory: map[turn]float64{}}
	for _, row := range memory { // first: they fail sooner
		for _, stack := range r.stacks(row) {
			fmt.Fprintf(os.Stderr, "%s: %s\n", row, stack)
			t := turn{row, stack}
			if res.memory[t], err = r.hold(ctx, t); err != nil {
				return fmt.Errorf("%s, %s: %w", stack, row, err)
			}
		}
	}
	for _, row := range rows {
		var turns []turn
		for _, stack := range r.stacks(row) {
			turns = append(turns, turn{row, stack})
		}
		res.rows = append(res.rows, turns)
	}
	if res.samples, err = r.takeTurns(ctx, f, rows, res.rows); err != nil {
		return err
	}
	if f.tsv != "" {
		if err := writeFile(f.tsv, res.writeTSV); err != nil {
			return err
		}
	}
	title, command, base := "ossl serve and ossl proxy beside other servers", "ci/serve-load", "serve-load-"
	if r.bare() {
		title, command, base = "Servers under load", "ci/handshake-cpu", "loaded-"
	}
	print := res.print
	if len(r.processors) > 0 {
		title, command, base, print = "Servers on many processors", "ci/scale", "scale-", res.printScaled
	}
	write := func(w io.Writer) {
		fmt.Fprintf(w, "# %s, OpenSSL %s\n\n%s\n\n%s", title, version, names, r.legend(f.rounds, f.seed))
		print(w)
		res.printMemory(w, memory, r)
	}
	if f.figures == "" {
		write(os.Stdout)
		return nil
	}
	return writeFile(filepath.Join(f.figures, base+version+".md"), func(w io.Writer) {
		fmt.Fprintf(w, "<!-- Written by %s -figures docs/figures: run it again rather than edit this. -->\n\n", command)
		write(w)
	})
}

// takeTurns starts the servers of rows, if there are any, runs the rounds, and stops the servers.
func (r *runner) takeTurns(ctx context.Context, f flags, rows []row, turns [][]turn) (s rounds.Samples[turn, sample], err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	defer func() { err = errors.Join(err, r.stopAll()) }()
	if err := r.startAll(rows); err != nil {
		return nil, err
	}
	begun := 0
	return rounds.Take(f.rounds, f.seed, turns, func(round int, t turn) (sample, error) {
		if round == begun {
			begun++
			fmt.Fprintf(os.Stderr, "round %d of %d\n", begun, f.rounds)
		}
		s, err := r.take(ctx, t)
		if err != nil {
			return s, fmt.Errorf("%s, %s: %w", t.stack, t.row, err)
		}
		return s, nil
	})
}

// versions returns the version of the servers' OpenSSL, such as 3.0, and the names of all programs.
func (r *runner) versions(ctx context.Context) (version, names string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", "", err
	}
	command := []string{self, "-library"}
	if r.librun != "" {
		command = append([]string{r.librun}, command...)
	}
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
	if err != nil {
		return "", "", fmt.Errorf("the version of OpenSSL: %w", err)
	}
	found := regexp.MustCompile(`^OpenSSL (\d+\.\d+)`).FindStringSubmatch(string(out))
	if found == nil {
		return "", "", fmt.Errorf("no version of OpenSSL: %q", out)
	}
	all := []string{strings.TrimSpace(string(out)), runtime.Version()}
	for _, command := range [][]string{{stackNginx, "-v"}, {stackStunnel, "-version"}, {stackHitch, "--version"}} {
		if r.programs[command[0]] == "" {
			continue
		}
		out, err := exec.CommandContext(ctx, r.programs[command[0]], command[1:]...).CombinedOutput()
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", strings.Join(command, " "), err)
		}
		all = append(all, programVersion.FindString(string(out)))
	}
	return found[1], strings.Join(all, "; ") + ".", nil
}

var programVersion = regexp.MustCompile(`(nginx/|stunnel |hitch )[0-9.]+`)

func writeFile(name string, write func(io.Writer)) error {
	var b strings.Builder
	write(&b)
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "wrote", name)
	return nil
}
