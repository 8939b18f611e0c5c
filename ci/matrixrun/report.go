//go:build unix

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A row has the results of one version in one mode.
type row struct {
	name    string
	library string          // the library's version text
	ran     map[string]bool // the tests that were not skipped
	passed  int             // tests and subtests
	failed  int
	skips   []skip
	leftOut []string // patterns of tests that did not even begin, each with its reason
	elapsed time.Duration
	used    time.Duration // of processors
}

// saysLeftOut begins a line that a test binary prints if it leaves tests out by itself. A pattern
// and the reason follow.
const saysLeftOut = "left out: "

type skip struct {
	test, reason string
}

// An event is a line of test2json's output (go doc test2json).
type event struct {
	Action, Package, Test, Output string
}

// name returns the test's name, after the last element of its package's path.
func (e event) name() string { return path.Base(e.Package) + "." + e.Test }

// read counts a test binary's results from test2json's output, and copies the output of failed
// tests to failures.
func (r *row) read(events io.Reader, failures io.Writer) error {
	output := map[string][]string{} // of tests that haven't finished; "" is the package itself
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("test2json: %w: %q", err, line)
			}
			r.add(e, output, failures)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (r *row) add(e event, output map[string][]string, failures io.Writer) {
	switch e.Action {
	case "run":
		output[e.Test] = nil
	case "output":
		output[e.Test] = append(output[e.Test], e.Output)
		if what, ok := strings.CutPrefix(e.Output, saysLeftOut); ok && e.Test == "" {
			r.leftOut = append(r.leftOut, strings.TrimSpace(what))
		}
	case "pass":
		if e.Test != "" {
			r.passed++
			r.ran[e.name()] = true
		}
		delete(output, e.Test)
	case "skip":
		if e.Test != "" {
			r.skips = append(r.skips, skip{e.name(), reason(output[e.Test])})
		}
		delete(output, e.Test)
	case "fail":
		if e.Test != "" {
			r.failed++
			r.ran[e.name()] = true
			fmt.Fprintf(failures, "%s: FAIL %s.%s\n%s", r.name, e.Package, e.Test, indent(output[e.Test]))
			delete(output, e.Test)
			return
		}
		// The package itself has failed. A crash or the time limit cut off the tests that have not
		// finished.
		own := output[""]
		delete(output, "")
		for _, test := range slices.Sorted(maps.Keys(output)) {
			r.failed++
			fmt.Fprintf(failures, "%s: FAIL %s.%s: did not end\n%s", r.name, e.Package, test, indent(output[test]))
		}
		fmt.Fprintf(failures, "%s: FAIL %s\n%s", r.name, e.Package, indent(own))
		clear(output)
	}
}

func indent(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

var logPrefix = regexp.MustCompile(`^\s*\S+_test\.go:\d+: |^\s*\S+\.go:\d+: `)

// reason finds the last message in a skipped test's output.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "=== ") || strings.HasPrefix(trimmed, "--- "):
		case logPrefix.MatchString(line):
			said = []string{strings.TrimSpace(logPrefix.ReplaceAllString(line, ""))} // a new message
		default:
			said = append(said, trimmed) // a message continues
		}
	}
	return strings.Join(said, " ")
}

const tools = `openssl|nginx|curl|gnutls-\w+|node|python3?|cc|redis-server|rust-libp2p|strace|mosquitto\w*|lib\w+-dev`

// steps are scripts that .ci/run calls as well, and that run tests which other steps leave out.
// TestSteps compares the list with .ci/run.
var steps = []string{"acme", "config", "kernel-tls", "redis"}

var (
	namesStep    = regexp.MustCompile(`\bci/(` + strings.Join(steps, "|") + `) runs it\b`)
	namesGo      = regexp.MustCompile(`\bgo1\.\d+`)
	namesMode    = regexp.MustCompile(`\bOSSL_(RECORDS=libssl|FIPS=require|TEST_FIPS)\b|\bonly without -short\b`)
	namesVersion = regexp.MustCompile(`(?i)\b(openssl|libssl|libcrypto)[ -]?\d+(\.\d+)+|(^|[^.\d])(1\.1\.1|[34]\.\d+)\b`)
	namesMusl    = regexp.MustCompile(`\bmusl\b`)
	namesTool    = regexp.MustCompile(`(?i)\b(` + tools + `)\b.*\b(not installed|not found|missing)\b`)
	namesNetwork = regexp.MustCompile(`\bno network namespace can be made\b`)
)

// explained reports whether a reason to skip names an OpenSSL or Go version, the C library musl, a
// way of running that other rows don't have, a missing tool or namespace, or the step that runs the
// test. A test with another reason runs on no machine, or is skipped on this one because of a
// mistake.
func explained(reason string) bool {
	return namesVersion.MatchString(reason) || namesMusl.MatchString(reason) || namesMode.MatchString(reason) || elsewhere(reason)
}

// elsewhere reports whether a reason to skip concerns this machine or another step: the test runs
// in that step, or may run on another machine with any OpenSSL.
func elsewhere(reason string) bool {
	return namesGo.MatchString(reason) || namesTool.MatchString(reason) || namesNetwork.MatchString(reason) ||
		namesStep.MatchString(reason)
}

// ranSomewhere returns the tests that a row did not skip, or that run elsewhere.
func ranSomewhere(rows []*row) map[string]bool {
	ran := map[string]bool{}
	for _, r := range rows {
		for _, s := range r.skips {
			if elsewhere(s.reason) {
				ran[s.test] = true
			}
		}
		maps.Copy(ran, r.ran)
	}
	return ran
}

// skippedByAll returns the tests, without their packages and parts, of which a part ran nowhere.
func skippedByAll(rows []*row) (tests []string) {
	ran := ranSomewhere(rows)
	for _, r := range rows {
		for _, s := range r.skips {
			if !ran[s.test] {
				_, name, _ := strings.Cut(s.test, ".")
				name, _, _ = strings.Cut(name, "/")
				tests = append(tests, name)
			}
		}
	}
	slices.Sort(tests)
	return slices.Compact(tests)
}

// report prints the table and the reasons for skips, and returns an error if the run is to fail.
// If whole is true, rows are all rows, so a test that all of them skipped runs nowhere.
func report(w io.Writer, rows []*row, whole, ci bool) error {
	var passed, failed, skipped, unexplained int
	where := map[skip][]string{} // the rows with each skip
	ran := ranSomewhere(rows)
	fmt.Fprintf(w, "\n%-19s %7s %7s %8s %7s %7s  %s\n", "version", "passed", "failed", "skipped", "time", "CPU", "library")
	for _, r := range rows {
		note := ""
		if len(r.leftOut) > 0 {
			note = "; some tests left out, see below"
		}
		fmt.Fprintf(w, "%-19s %7d %7d %8d %6.0fs %6.0fs  %s%s\n",
			r.name, r.passed, r.failed, len(r.skips), r.elapsed.Seconds(), r.used.Seconds(), r.library, note)
		passed, failed, skipped = passed+r.passed, failed+r.failed, skipped+len(r.skips)
		for _, s := range r.skips {
			where[s] = append(where[s], r.name)
		}
	}
	if skipped > 0 {
		fmt.Fprintf(w, "\nskipped:\n")
	}
	// Tests that were skipped for one reason in the same rows share a line.
	type line struct{ versions, reason, note string }
	lines := map[line][]string{}
	for s, versions := range where {
		note := ""
		switch {
		case !explained(s.reason):
			note = "  <- names no version, no missing tool and no step"
		case whole && !ran[s.test]:
			note = "  <- ran under no version"
		}
		if note != "" {
			unexplained++
		}
		l := line{strings.Join(versions, ","), s.reason, note}
		lines[l] = append(lines[l], s.test)
	}
	byLine := func(a, b line) int {
		return cmp.Or(strings.Compare(a.reason, b.reason), strings.Compare(a.versions, b.versions))
	}
	for _, l := range slices.SortedFunc(maps.Keys(lines), byLine) {
		tests := slices.Sorted(slices.Values(lines[l]))
		name := tests[0]
		if len(tests) > 1 {
			name = fmt.Sprintf("%s and %d more", name, len(tests)-1)
		}
		fmt.Fprintf(w, "  %s: %s: %s%s\n", l.versions, name, l.reason, l.note)
	}
	for _, r := range rows {
		if len(r.leftOut) > 0 {
			fmt.Fprintf(w, "\nleft out of %s, and not counted:\n", r.name)
		}
		for _, what := range r.leftOut {
			fmt.Fprintf(w, "  %s\n", what)
		}
	}
	fmt.Fprintf(w, "\nmatrix: %d passed, %d failed, %d skipped\n", passed, failed, skipped)
	for _, r := range rows {
		if r.passed == 0 {
			return fmt.Errorf("%s: no test passed", r.name)
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d tests failed", failed)
	case unexplained > 0 && ci:
		return fmt.Errorf("%d tests skipped without an acceptable reason", unexplained)
	}
	return nil
}
