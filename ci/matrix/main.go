// Command matrix runs the core module's tests under several versions of OpenSSL and prints one table.
//
// Usage, from the module's root folder (ci/versions does the first part and then this):
//
//	ci/openssl-versions DIR
//	go run ./ci/matrix [-only 1.1,3.5] [-run REGEXP] DIR
//
// It fails when a test fails under any version, when a version other than the one named was loaded, and, with CI=true, when
// a test was skipped under every version, or for any reason but a version or a tool that isn't installed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	only := flag.String("only", "", "run these versions only: names separated by commas, system for the host's own")
	run := flag.String("run", "", "run only tests that match `regexp`, as go test does")
	skip := flag.String("skip", "", "leave out tests that match `regexp`")
	packages := flag.String("packages", "./...", "test these packages: patterns separated by commas")
	timeout := flag.Duration("timeout", 10*time.Minute, "stop a package's tests after this `time`")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: matrix [flags] DIR")
		os.Exit(2)
	}
	args := []string{
		"-test.v=test2json", "-test.shuffle=on", "-test.timeout=" + timeout.String(), "-test.run=" + *run, "-test.skip=" + *skip,
	}
	// Interrupted, it still removes what it made.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := matrix(ctx, flag.Arg(0), *only, strings.Split(*packages, ","), args, os.Getenv("CI") == "true"); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func matrix(ctx context.Context, dir, only string, patterns, args []string, ci bool) error {
	versions, err := findVersions(dir, only)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "ossl-versions-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	bed := testbed{dir: scratch}
	binaries, err := bed.build(ctx, patterns)
	if err != nil {
		return err
	}
	var rows []*row
	for _, v := range versions {
		r, err := bed.run(ctx, v, binaries, args)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		rows = append(rows, r)
	}
	return report(os.Stdout, rows, only == "", ci)
}

// A version is one OpenSSL to run under: the host's own, or a tree that ci/openssl-versions unpacked.
type version struct {
	name string
	tree string // "" for the host's own
}

var numbered = regexp.MustCompile(`^\d+\.\d+$`)

// findVersions lists the host's own and the trees in dir, those named by number first. only narrows the list; a name in it
// that isn't there is an error.
func findVersions(dir, only string) ([]version, error) {
	runs, err := filepath.Glob(filepath.Join(dir, "*", "run"))
	if err != nil {
		return nil, err
	}
	versions := []version{{name: "system"}}
	for _, run := range runs {
		tree, err := filepath.Abs(filepath.Dir(run))
		if err != nil {
			return nil, err
		}
		versions = append(versions, version{filepath.Base(tree), tree})
	}
	slices.SortStableFunc(versions[1:], func(a, b version) int {
		if numbered.MatchString(a.name) != numbered.MatchString(b.name) {
			return strings.Compare(a.name, b.name) // digits sort before letters
		}
		return 0
	})
	if only == "" {
		return versions, nil
	}
	var chosen []version
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(versions, func(v version) bool { return v.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no version %q in %s", name, dir)
		}
		chosen = append(chosen, versions[i])
	}
	return chosen, nil
}

// A binary is one package's tests, compiled.
type binary struct {
	pkg, dir, file string
}

// build compiles every package's tests once, for all versions.
func (b *testbed) build(ctx context.Context, patterns []string) ([]binary, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`
	list, err := exec.CommandContext(ctx, "go", append([]string{"list", "-f", format}, patterns...)...).Output()
	if err != nil {
		return nil, commandError("go list", err)
	}
	var binaries []binary
	for line := range strings.Lines(string(list)) {
		pkg, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.Contains(pkg, "/ci/") {
			continue // the scripts' own tests call no OpenSSL
		}
		file := filepath.Join(b.dir, fmt.Sprintf("%d.test", len(binaries)))
		if err := b.compile(ctx, "test", "-c", "-o", file, pkg); err != nil {
			return nil, err
		}
		binaries = append(binaries, binary{pkg, dir, file})
	}
	if len(binaries) == 0 {
		return nil, fmt.Errorf("no package with tests in %s", strings.Join(patterns, " "))
	}
	return binaries, b.compile(ctx, "build", "-buildvcs=false", "-o", b.library(), "./ci/library")
}

// compile runs a go command that links what it makes to the testbed's loader and libraries.
func (b *testbed) compile(ctx context.Context, args ...string) error {
	args = slices.Insert(args, len(args)-1, "-ldflags", b.ldflags())
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// commandError adds what a command said to its exit status.
func commandError(what string, err error) error {
	if exit, ok := err.(*exec.ExitError); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%s: %w\n%s", what, err, exit.Stderr)
	}
	return fmt.Errorf("%s: %w", what, err)
}
