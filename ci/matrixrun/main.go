//go:build unix

// Command matrixrun runs the repository's tests under several OpenSSL versions and prints one
// table. It is the second half of the script ci/matrix, which gets the versions:
//
//	ci/openssl-versions -source 4.0.3 -arm64 DIR
//	go run ./ci/matrixrun [-only 1.1,3.5] [-run REGEXP] DIR
//	go run ./ci/matrixrun [-run REGEXP] -at /opt/openssl-4.1
//
// It fails if a test fails in any row, or if a version other than the one named was loaded. With
// CI=true it also fails if a test was skipped in every row, or for any reason but a version or a
// tool that isn't installed.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "run these `rows` only, separated by commas: "+
		"versions (3.5), whole names (3.5 FIPS) or a version's first row (3.5 alone)")
	flag.BoolVar(&o.others, "others", false, "also run the rows of releases that Debian hasn't, and those that others stand for")
	flag.BoolVar(&o.afterTest, "after-test", false,
		"run of the rows that 'make test' stands for only the tests that all other rows skip")
	flag.StringVar(&o.at, "at", "", "run the rows of the OpenSSL in this `folder` instead")
	flag.BoolVar(&o.nocgo, "nocgo", false, "build the programs without cgo, with the objects that ci/nocgo has made; "+
		"the tests that come to OpenSSL, with -short: all of the core in the system's row, "+
		"those nearest to C in others, and the adapters' under 3.5")
	flag.BoolVar(&o.short, "short", false, "run all tests with -short")
	flag.StringVar(&o.without, "without", "", "leave out these `versions`, separated by commas")
	flag.StringVar(&o.run, "run", "", "run only tests that match `regexp`, as go test does")
	flag.StringVar(&o.skip, "skip", "", "leave out tests that match `regexp`")
	flag.StringVar(&o.packages, "packages", "", "test packages of the core that match these `patterns` only, separated by commas")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "stop a package's tests after this `time`")
	flag.Parse()
	if o.at == "" && flag.NArg() != 1 || o.at != "" && flag.NArg() != 0 {
		fmt.Fprintln(os.Stderr, "usage: matrixrun [flags] DIR\n       matrixrun [flags] -at FOLDER")
		os.Exit(2)
	}
	// After an interrupt, it still removes its files.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := matrix(ctx, flag.Arg(0), o, os.Getenv("CI") == "true"); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

type options struct {
	only, at, without, run, skip, packages string
	others, afterTest, nocgo, short        bool
	timeout                                time.Duration
}

// arguments returns the arguments of a test binary.
func (o options) arguments(p planned) []string {
	run, timeout := p.mode.run, o.timeout
	if o.run != "" {
		run = o.run
	}
	skip := o.skip
	if p.version.emulated {
		timeout *= 3
		if skip == "" && o.run == "" {
			skip = hostsOnly
		}
	}
	return []string{
		"-test.v=test2json", "-test.shuffle=on", "-test.timeout=" + timeout.String(), "-test.run=" + run, "-test.skip=" + skip,
		fmt.Sprint("-test.short=", p.short() || o.nocgo || o.short),
	}
}

// hostsOnly are tests that are left out of a whole row of an emulated processor, where they take
// half of the time. Some measure the memory of a session, a context or a connection, or count
// threads, which is the same with any 64-bit processor. Some differ from the remaining tests only
// in a decision that Go alone makes: the limits of a ClientHello and of a Certificate, the server's
// mode of client authentication, the names that bind a session, the configuration that a callback
// chose, and files of libraries that are cut short. FuzzRecordPaths repeats records that other
// tests send. Two tests need namespaces, which the emulator can't make. The host's rows run all of
// these tests.
const hostsOnly = "^Test(BytesPerSession|CompiledConfigsAreBounded|Soak|Threads|Uploads)$" +
	"|^Test(PID|Network)Namespace$" +
	"|^TestDifferential(LongHello|CertificateSize|ClientAuth)$" +
	"|^Test(CertificateSize|ConfigurationPairs|ThousandSlowSigners|TrimAfterBurst|Chosen(IsFreed|CopiesAreCompiledOnce|Stress))$" +
	"|^(TestSessionIsBoundToIdentity|TestLibrariesCutShort|FuzzRecordPaths)$" +
	"|^TestVerificationNeverFailsOpen$/././(VerifyClientCertIfGiven|callbacks_accept)"

// hostsPackages are the packages of the core that the rows of musl and of an emulated processor leave
// out: they compare decisions and texts with crypto/tls's, or the sources with each other, or test
// what Go alone decides, as revocation, files that are watched, how OpenSSL's configuration is read,
// and how sockets go to another process. The other packages run all of the C code.
var hostsPackages = []string{"/internal/tests/differential", "/internal/tests/errortexts", "/internal/tests/docs",
	"/internal/tests/deps", "/internal/tests/fips", "/internal/tests/hostpolicy", "/internal/tests/revocation",
	"/internal/tests/watch", "/handover"}

// nearC are the packages of the core that one row of a build without cgo runs on each OpenSSL and C
// library, and for each processor: what differs from a build with cgo is how C is called.
var nearC = []string{"", "/keys", "/internal/libssl", "/internal/tests/conns", "/internal/tests/interop",
	"/internal/tests/records"}

// whole reports whether no option leaves a test out.
func (o options) whole() bool {
	return o == options{timeout: o.timeout, others: o.others, afterTest: o.afterTest}
}

func matrix(ctx context.Context, dir string, o options, ci bool) error {
	versions, err := o.versions(dir)
	if err != nil {
		return err
	}
	without := strings.Split(o.without, ",")
	versions = slices.DeleteFunc(versions, func(v version) bool { return slices.Contains(without, v.name) })
	plan, err := choose(rowsOf(versions), o.only, o.others)
	if err != nil {
		return err
	}
	stoodFor := o.afterTest && slices.ContainsFunc(plan, planned.tested)
	if stoodFor {
		plan = slices.DeleteFunc(plan, planned.tested)
	}
	scratch, err := os.MkdirTemp("", "ossl-matrix-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	rows := make([]*row, len(plan))
	host, err := runAll(ctx, plan, rows, scratch, o)
	if err != nil {
		return err
	}
	if rest := skippedByAll(rows); stoodFor && len(rest) > 0 && host != nil {
		last, err := host.runRest(ctx, planned{version{name: "system"}, modes[0]}, rest, o)
		if err != nil {
			return err
		}
		rows = append(rows, last)
	}
	return report(os.Stdout, rows, o.whole(), ci)
}

// versions returns the versions in dir, or the version that -at names.
func (o options) versions(dir string) ([]version, error) {
	if o.at == "" {
		return findVersions(dir)
	}
	v, err := versionAt(o.at)
	if err != nil {
		return nil, fmt.Errorf("-at: %w", err)
	}
	fmt.Printf("OpenSSL %s in %s, with the rows of %s\n", v.number, v.libraries, v.like)
	return []version{v}, nil
}

// lanes is the number of the host's rows that run at the same time.
const lanes = 2

// runAll runs the rows of a plan. It runs the rows of the emulated processor, which is slow, and of
// musl at the same time as the host's rows, and several of the host's rows at once, since tests
// wait a lot. Each lane has its own testbed; runAll returns a testbed of the host's rows, or nil.
func runAll(ctx context.Context, plan []planned, rows []*row, scratch string, o options) (bed *testbed, err error) {
	var host, emulated, musl []int // indexes of plan
	for i, p := range plan {
		switch {
		case p.version.emulated:
			emulated = append(emulated, i)
		case p.version.musl:
			musl = append(musl, i)
		default:
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
			bed := &testbed{dir: filepath.Join(scratch, "emulated"), nocgo: o.nocgo, sysroot: plan[emulated[0]].version.tree}
			if err := bed.build(ctx, o.packages, false); err != nil {
				return err
			}
			return bed.runRows(ctx, plan, rows, queueOf(emulated), o)
		})
	}
	if len(musl) > 0 {
		begin(func() error {
			bed := &testbed{dir: filepath.Join(scratch, "musl"), nocgo: o.nocgo, cc: muslCC}
			if err := bed.build(ctx, o.packages, false); err != nil {
				return err
			}
			return bed.runRows(ctx, plan, rows, queueOf(musl), o)
		})
	}
	if len(host) > 0 {
		begin(func() error {
			first := &testbed{dir: filepath.Join(scratch, "lane0"), nocgo: o.nocgo}
			bed = first
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
	return bed, context.Cause(ctx)
}

// runRest runs the tests of a row that all other rows skip. 'make test' stands for the row's other tests.
func (b *testbed) runRest(ctx context.Context, p planned, tests []string, o options) (*row, error) {
	o.run = "^(" + strings.Join(tests, "|") + ")$"
	r, err := b.run(ctx, p, o.arguments(p))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name(), err)
	}
	r.leftOut = append(r.leftOut, "those that another row has run: 'make test' runs them on this OpenSSL, on both record paths")
	return r, nil
}

// weight orders rows by how long they take.
func weight(p planned) int {
	switch {
	case p.adapters() && p.mode.run == "":
		return 2
	case p.mode.run == "":
		return 1
	}
	return 0
}

// queueOf returns a closed channel that holds the indexes.
func queueOf(indexes []int) <-chan int {
	queue := make(chan int, len(indexes))
	for _, i := range indexes {
		queue <- i
	}
	close(queue)
	return queue
}

// runRows runs the rows of a plan whose indexes it receives from a queue.
func (b *testbed) runRows(ctx context.Context, plan []planned, rows []*row, queue <-chan int, o options) error {
	for i := range queue {
		p := plan[i]
		var err error
		args := o.arguments(p)
		if rows[i], err = b.run(ctx, p, args); err != nil {
			return fmt.Errorf("%s: %w", p.name(), err)
		}
		if slices.Contains(args, "-test.skip="+hostsOnly) {
			rows[i].leftOut = append(rows[i].leftOut, hostsOnly+": nothing about them is a processor's")
		}
	}
	return nil
}
