//go:build linux

// Command serveload loads 'ossl serve' and 'ossl proxy', the same with --engine go, nginx, stunnel
// and hitch, and compares their speed and processor time. ci/serve-load installs its needs and runs
// it:
//
//	serveload -ossl PROGRAM -client PROGRAM -nginx PROGRAM … [-run PROGRAM] [FLAGS]
//
// All servers live at the same time and take turns: in each round the rows are in a random order,
// and in each row the servers are. A ratio is the median of the ratios of turns that followed each
// other in one round, with the quartiles, so the machine's changes of speed hardly matter.
//
// It asserts no times. It fails if a request fails, if a connection was resumed that should not have
// been, or the reverse, or if servers don't use the same libssl, suite and group.
package main

import (
	"context"
	"encoding/json"
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
	"strings"
	"syscall"
	"time"
)

// flags are the command line, without the runner's.
type flags struct {
	rounds  int
	rows    string
	figures string
	tsv     string
	seed    uint64
}

func parse(args []string, usage io.Writer) (r *runner, f flags, err error) {
	r = &runner{programs: map[string]string{}, numbers: map[turn]int{}}
	set := flag.NewFlagSet("serveload", flag.ContinueOnError)
	set.SetOutput(usage)
	for name, stack := range map[string]string{"ossl": stackOSSL, "nginx": stackNginx, "stunnel": stackStunnel, "hitch": stackHitch,
		"client": clientC, "wrk": wrk, "h2load": h2load} {
		set.Func(name, "the `program`", func(s string) error {
			r.programs[stack] = s
			return nil
		})
	}
	set.StringVar(&r.librun, "run", "", "start the servers by this `program`, on the OpenSSL that it brings")
	set.IntVar(&f.rounds, "rounds", 7, "`rounds`, in which each server has one turn in each row")
	set.DurationVar(&r.turn, "turn", time.Second, "the `time` of a turn; wrk's are of whole seconds, at least one")
	set.IntVar(&r.clients, "clients", 16, "`clients` at a time that make new connections")
	set.IntVar(&r.idle, "idle", 10_000, "idle `clients`")
	set.StringVar(&f.rows, "rows", "", "only rows whose name matches this `regexp`, as '^TCP proxy: new'")
	set.StringVar(&f.figures, "figures", "", "write serve-load-VERSION.md into this `folder`, named for the libssl")
	set.StringVar(&f.tsv, "tsv", "", "write each turn into this `file`")
	set.Uint64Var(&f.seed, "seed", 0, "the `seed` of the turns' order; 0 for a new one")
	if err := set.Parse(args); err != nil {
		return nil, f, err
	}
	r.programs[stackGo] = r.programs[stackOSSL]
	for _, name := range []string{stackOSSL, stackNginx, stackStunnel, stackHitch, clientC, wrk, h2load} {
		if r.programs[name] == "" {
			return nil, f, fmt.Errorf("-%s is missing", name)
		}
	}
	switch {
	case set.NArg() > 0:
		return nil, f, fmt.Errorf("unknown argument %q", set.Arg(0))
	case f.rounds < 1 || r.clients < 1 || r.idle < 1 || r.turn < 10*time.Millisecond:
		return nil, f, errors.New("a number is too small")
	}
	return r, f, nil
}

func main() {
	r, f, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "serveload:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := r.measure(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "serveload:", err)
		os.Exit(1)
	}
}

// measure runs the rounds and prints the tables.
func (r *runner) measure(ctx context.Context, f flags) (err error) {
	pattern, err := regexp.Compile(f.rows)
	if err != nil {
		return err
	}
	rows, memory := selectRows(pattern)
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
	if r.dir, err = os.MkdirTemp("", "ossl-serveload-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	if err := r.prepare(); err != nil {
		return err
	}
	if err := r.checkOffer(ctx); err != nil {
		return err
	}
	res := newResults()
	for _, row := range memory { // first: they fail sooner
		for _, stack := range row.stacks() {
			fmt.Fprintf(os.Stderr, "%s: %s\n", row, stack)
			t := turn{row, stack}
			if res.memory[t], err = r.hold(ctx, t); err != nil {
				return fmt.Errorf("%s, %s: %w", stack, row, err)
			}
		}
	}
	if err := r.runTurns(ctx, f, rows, res); err != nil {
		return err
	}
	version, names, err := r.versions(ctx)
	if err != nil {
		return err
	}
	head := names + "\n\n" + legend(f.rounds, r, f.seed)
	rows = append(rows, memory...)
	if f.tsv != "" {
		if err := writeFile(f.tsv, func(w io.Writer) { res.writeTSV(w, rows) }); err != nil {
			return err
		}
	}
	if f.figures != "" {
		return writeFigures(f.figures, version, head, rows, res)
	}
	fmt.Println(head)
	res.print(os.Stdout, rows)
	return nil
}

// runTurns starts the servers, runs the rounds, and ends the servers.
func (r *runner) runTurns(ctx context.Context, f flags, rows []row, res *results) (err error) {
	if len(rows) == 0 {
		return nil
	}
	defer func() { err = errors.Join(err, r.stopAll()) }()
	if err := r.startAll(rows); err != nil {
		return err
	}
	order := rand.New(rand.NewPCG(f.seed, 0))
	for round := range f.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, f.rounds)
		for _, t := range roundOrder(order, rows) {
			s, err := r.take(ctx, t)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", t.stack, t.row, err)
			}
			res.samples.Add(t, round, s)
		}
	}
	return nil
}

// versions returns the version of ossl's library, such as 3.0, and the names of all programs.
func (r *runner) versions(ctx context.Context) (version, names string, err error) {
	args := []string{r.programs[stackOSSL], "version", "--json"}
	if r.librun != "" {
		args = append([]string{r.librun}, args...)
	}
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
	if err != nil {
		return "", "", fmt.Errorf("ossl version: %w", err)
	}
	var found struct {
		Go      string `json:"go"`
		Library struct {
			Version string `json:"version"`
			Text    string `json:"version_text"`
		} `json:"library"`
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return "", "", err
	}
	version = strings.Join(strings.SplitN(found.Library.Version, ".", 3)[:2], ".")
	all := []string{found.Library.Text, found.Go}
	for _, command := range [][]string{{r.programs[stackNginx], "-v"}, {r.programs[stackStunnel], "-version"},
		{r.programs[stackHitch], "--version"}} {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", strings.Join(command, " "), err)
		}
		all = append(all, programVersion.FindString(string(out)))
	}
	return version, strings.Join(all, "; ") + ".", nil
}

var programVersion = regexp.MustCompile(`(nginx/|stunnel |hitch )[0-9.]+`)

func writeFigures(dir, version, head string, rows []row, res *results) error {
	return writeFile(filepath.Join(dir, "serve-load-"+version+".md"), func(w io.Writer) {
		fmt.Fprintf(w, "<!-- Written by ci/serve-load -figures docs/figures: run it again rather than edit this. -->\n\n"+
			"# ossl serve and ossl proxy beside other servers, OpenSSL %s\n\n%s\n", version, head)
		res.print(w, rows)
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
