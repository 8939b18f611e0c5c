//go:build unix

// Command matrixrun runs the repository's tests under several versions of OpenSSL and prints one
// table. It is the second half of the script ci/matrix, which gets the versions:
//
//	ci/openssl-versions -source 4.0.3 -arm64 DIR
//	go run ./ci/matrixrun [-only 1.1,3.5] [-run REGEXP] DIR
//
// It fails when a test fails in any row, when a version other than the one named was loaded, and,
// with CI=true, when a test was skipped in every row, or for any reason but a version or a tool
// that isn't installed.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "run these `rows` only: versions (3.5), whole names (3.5 FIPS) or a version's first row (3.5 alone), separated by commas")
	flag.BoolVar(&o.others, "others", false, "also run the rows of releases that Debian hasn't")
	flag.StringVar(&o.without, "without", "", "leave out this `version`")
	flag.StringVar(&o.run, "run", "", "run only tests that match `regexp`, as go test does")
	flag.StringVar(&o.skip, "skip", "", "leave out tests that match `regexp`")
	flag.StringVar(&o.packages, "packages", "", "test packages of the core that match these `patterns` only, separated by commas")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "stop a package's tests after this `time`")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: matrixrun [flags] DIR")
		os.Exit(2)
	}
	// Interrupted, it still removes its files.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := matrix(ctx, flag.Arg(0), o, os.Getenv("CI") == "true"); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

type options struct {
	only, without, run, skip, packages string
	others                             bool
	timeout                            time.Duration
}

// arguments are a test binary's.
func (o options) arguments(m mode, v version) []string {
	run, timeout := m.run, o.timeout
	if o.run != "" {
		run = o.run
	}
	skip := o.skip
	if v.emulated {
		timeout *= 3
		if skip == "" && o.run == "" {
			skip = hostsOnly
		}
	}
	return []string{
		"-test.v=test2json", "-test.shuffle=on", "-test.timeout=" + timeout.String(), "-test.run=" + run, "-test.skip=" + skip,
	}
}

// hostsOnly are tests that are left out of a whole row of an emulated processor, of which they take
// a third: they have one process after the other read a configuration file, of which TestHostPolicy
// does enough there; or they measure the memory of a session, a context or a connection, or count
// threads, which is the same with any 64-bit processor. The host's rows run them.
const hostsOnly = "^Test(HostPolicyFile|InteropHostPolicy|BytesPerSession|CompiledConfigsAreBounded|Soak|Threads|Uploads)$"

// whole reports whether no option leaves a test out.
func (o options) whole() bool { return o == options{timeout: o.timeout, others: o.others} }

func matrix(ctx context.Context, dir string, o options, ci bool) error {
	versions, err := findVersions(dir)
	if err != nil {
		return err
	}
	versions = slices.DeleteFunc(versions, func(v version) bool { return v.name == o.without })
	plan, err := choose(rowsOf(versions), o.only, o.others)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "ossl-matrix-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	rows := make([]*row, len(plan))
	if err := runAll(ctx, plan, rows, scratch, o); err != nil {
		return err
	}
	return report(os.Stdout, rows, o.whole(), ci)
}

// lanes is how many of the host's rows are run beside one another.
const lanes = 2

// runAll runs the rows of a plan. It runs those of the emulated processor, which is slow, at the
// same time as those of the host, and several of these at once, since tests wait a lot. Each lane
// has a testbed of its own.
func runAll(ctx context.Context, plan []planned, rows []*row, scratch string, o options) error {
	var host, emulated []int // indexes of plan
	for i, p := range plan {
		if p.version.emulated {
			emulated = append(emulated, i)
		} else {
			host = append(host, i)
		}
	}
	slices.SortStableFunc(host, func(a, b int) int { // the longest first
		return cmp.Compare(weight(plan[b]), weight(plan[a]))
	})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	begin := func(f func() error) {
		running.Go(func() {
			if err := f(); err != nil {
				cancel(err) // the first is the cause of the others
			}
		})
	}
	adapters := slices.ContainsFunc(plan, planned.adapters)
	if len(emulated) > 0 {
		begin(func() error {
			bed := &testbed{dir: filepath.Join(scratch, "emulated"), sysroot: plan[emulated[0]].version.tree}
			if err := bed.build(ctx, o.packages, false); err != nil {
				return err
			}
			return bed.runRows(ctx, plan, rows, queueOf(emulated), o)
		})
	}
	if len(host) > 0 {
		begin(func() error {
			first := &testbed{dir: filepath.Join(scratch, "lane0")}
			if err := first.build(ctx, o.packages, adapters); err != nil {
				return err
			}
			queue := queueOf(host)
			for n := 1; n < min(lanes, len(host)); n++ {
				bed, err := first.clone(filepath.Join(scratch, fmt.Sprint("lane", n)))
				if err != nil {
					return err
				}
				begin(func() error { return bed.runRows(ctx, plan, rows, queue, o) })
			}
			return first.runRows(ctx, plan, rows, queue, o)
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// weight orders rows by how long they take.
func weight(p planned) int {
	switch {
	case p.adapters():
		return 2
	case p.mode.run == "":
		return 1
	}
	return 0
}

// queueOf returns a channel that gives the indexes, and then is closed.
func queueOf(indexes []int) <-chan int {
	queue := make(chan int, len(indexes))
	for _, i := range indexes {
		queue <- i
	}
	close(queue)
	return queue
}

// runRows runs those rows of a plan that it gets from a queue.
func (b *testbed) runRows(ctx context.Context, plan []planned, rows []*row, queue <-chan int, o options) error {
	for i := range queue {
		p := plan[i]
		var err error
		args := o.arguments(p.mode, p.version)
		if rows[i], err = b.run(ctx, p, args); err != nil {
			return fmt.Errorf("%s: %w", p.name(), err)
		}
		if slices.Contains(args, "-test.skip="+hostsOnly) {
			rows[i].leftOut = append(rows[i].leftOut, hostsOnly+": nothing about them is a processor's")
		}
	}
	return nil
}

// A version is one OpenSSL to run under: the host's own, or a tree that ci/openssl-versions made.
type version struct {
	name     string
	tree     string // "" for the host's own
	emulated bool   // another processor's: the tree is a system's root
}

var numbered = regexp.MustCompile(`^\d+(\.\d+)+[a-z]?`)

// findVersions lists the host's own and the trees of OpenSSL in dir, those named by number first.
func findVersions(dir string) ([]version, error) {
	runs, err := filepath.Glob(filepath.Join(dir, "*", "run"))
	if err != nil {
		return nil, err
	}
	versions := []version{{name: "system"}}
	for _, run := range runs {
		if filepath.Base(filepath.Dir(run)) == "valkey" {
			continue // a server, with the OpenSSL that comes with it: another 3.5
		}
		tree, err := filepath.Abs(filepath.Dir(run))
		if err != nil {
			return nil, err
		}
		versions = append(versions, version{name: filepath.Base(tree), tree: tree})
	}
	slices.SortStableFunc(versions[1:], func(a, b version) int {
		return strings.Compare(a.name, b.name) // digits sort before letters
	})
	if tree, err := filepath.Abs(filepath.Join(dir, "arm64")); err == nil && isDir(tree) {
		versions = append(versions, version{name: "arm64", tree: tree, emulated: true})
	}
	return versions, nil
}

// A mode is a way of running the tests.
type mode struct {
	name    string
	run     string   // regexp of tests, or "" for all
	env     []string // variables that replace those of the environment
	apiOnly bool     // the tests of the core's API: see binary.ofAPI
	fips    bool     // with the FIPS provider configured
	only    []string // the versions that it is for, or nil for all
}

var modes = []mode{
	{},
	{name: "libssl", env: []string{"OSSL_RECORDS=libssl"}, apiOnly: true}, // with libssl's record path
	// With sessions: clients' records are libssl's until the first ticket or data.
	{name: "sessions", env: []string{"OSSL_TEST_SESSIONS=1"}, run: "^Test(Differential|Close|Deadlines|Interop)", apiOnly: true},
	// Without the library context of our own that makes handshakes cheaper: one version from before
	// 3.2, and one since.
	{name: "not slim", env: []string{"OSSL_SLIM=off"}, run: "^Test(Differential|Interop|Resum|Verification)", apiOnly: true,
		only: []string{"system", "3.5"}},
	// FIPS mode by what the program says, by the environment, and with libssl's record path.
	{name: "FIPS", run: "FIPS", apiOnly: true, fips: true},
	{name: "FIPS require", env: []string{"OSSL_FIPS=require"}, run: "FIPS", apiOnly: true, fips: true},
	{name: "FIPS libssl", env: []string{"OSSL_RECORDS=libssl"}, run: "FIPS", apiOnly: true, fips: true},
	// The tests of connections in FIPS mode, compared with a crypto/tls that is in its own.
	{name: "all FIPS", env: []string{"OSSL_TEST_FIPS=1", "GODEBUG=fips140=on"}, apiOnly: true, fips: true},
}

// withAdapters are the versions under which the other modules' tests run too. Those use the core's
// API only, so the oldest version, the newest, and the one with the longest support are enough.
var withAdapters = []string{"1.1", "3.5", "4.0"}

// A planned row is a version in a mode.
type planned struct {
	version version
	mode    mode
}

func (p planned) name() string { return strings.TrimSpace(p.version.name + " " + p.mode.name) }
func (p planned) adapters() bool {
	return p.mode.name == "" && slices.Contains(withAdapters, p.version.name)
}

// other reports whether the row is of a release that Debian doesn't have, which runs only if the
// options ask for it. Of the oldest 3.0, which differs most from the one that Debian has, and of
// the newest, one row is always run.
func (p planned) other() bool {
	return strings.HasSuffix(p.version.name, "-source") && p.name() != oldest && p.name() != newest
}

const oldest, newest = "3.0.2-source", "4.0.3-source"

// fipsConfig returns the configuration file that activates a version's FIPS provider.
// ci/openssl-versions writes it.
func (v version) fipsConfig() string { return filepath.Join(v.tree, "fips.cnf") }

func rowsOf(versions []version) []planned {
	var plan []planned
	for _, v := range versions {
		for _, m := range modes {
			if m.fips {
				// One is enough, of the version whose provider is the next to be validated.
				if _, err := os.Stat(v.fipsConfig()); v.name != "3.5" || err != nil {
					continue
				}
				m.env = append(slices.Clip(m.env), "OPENSSL_CONF="+v.fipsConfig())
			}
			if m.only != nil && !slices.Contains(m.only, v.name) {
				continue
			}
			if v.emulated && m.name != "" {
				continue // a processor makes a difference to each function, not to which are called
			}
			if v.name == newest && m.name != "" {
				continue // it is another build of 4.0
			}
			plan = append(plan, planned{v, m})
		}
	}
	return plan
}

// choose narrows a plan to the rows that only names, or to those that run without being named. A
// version's name stands for all its rows, and with " alone" for the first of them.
func choose(plan []planned, only string, others bool) ([]planned, error) {
	if only == "" {
		return slices.DeleteFunc(plan, func(p planned) bool { return p.other() && !others }), nil
	}
	var chosen []planned
	for name := range strings.SplitSeq(only, ",") {
		before := len(chosen)
		for _, p := range plan {
			if p.name() == name || p.version.name == name || p.name()+" alone" == name {
				chosen = append(chosen, p)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("no row or version %q", name)
		}
	}
	return chosen, nil
}
