//go:build unix

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A version is one OpenSSL to run under: the host's own, a tree that ci/openssl-versions made, or a
// folder that -at names.
type version struct {
	name     string
	tree     string // "" for the host's own
	emulated bool   // another processor's: the tree is a system's root
	musl     bool   // for programs with the C library musl

	// Of the folder that -at names; else "":
	number    string // the version that its libcrypto reports
	like      string // the name of the version whose rows it has
	libraries string // the folder of its libraries
	major     string // the number in their names
}

// rowsLike returns the name of the version whose rows v has.
func (v version) rowsLike() string { return cmp.Or(v.like, v.name) }

var numbered = regexp.MustCompile(`^\d+(\.\d+)+[a-z]?`)

// ofPrograms reports whether a tree with this name holds programs to test with, and perhaps the
// OpenSSL that comes with them. Such a tree is not a version.
func ofPrograms(name string) bool {
	return name == "valkey" || strings.HasPrefix(name, "servers-")
}

// findVersions lists the host's own version and the OpenSSL trees in dir, those named by number
// first.
func findVersions(dir string) ([]version, error) {
	runs, err := filepath.Glob(filepath.Join(dir, "*", "run"))
	if err != nil {
		return nil, err
	}
	versions := []version{{name: "system"}}
	for _, run := range runs {
		if ofPrograms(filepath.Base(filepath.Dir(run))) {
			continue
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
	if tree, err := filepath.Abs(filepath.Join(dir, "musl")); err == nil && isDir(tree) {
		versions = append(versions, version{name: "musl", tree: tree, musl: true})
	}
	if tree, err := filepath.Abs(filepath.Join(dir, "arm64")); err == nil && isDir(tree) {
		versions = append(versions, version{name: "arm64", tree: tree, emulated: true})
	}
	return versions, nil
}

// A mode is a way of running the tests.
type mode struct {
	name    string
	run     string   // regexp of tests, or "" for all
	env     []string // variables that replace the environment's
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
	// As on a machine with more than eight processors.
	{name: "shards", env: []string{"OSSL_SHARDS=3"}, run: "^Test(Differential|Interop|Resum|Verification)", apiOnly: true,
		only: []string{"system", "3.5"}},
	// FIPS mode set by the program, by the environment, and with libssl's record path.
	{name: "FIPS", run: "FIPS", apiOnly: true, fips: true},
	{name: "FIPS require", env: []string{"OSSL_FIPS=require"}, run: "FIPS", apiOnly: true, fips: true},
	{name: "FIPS libssl", env: []string{"OSSL_RECORDS=libssl"}, run: "FIPS", apiOnly: true, fips: true},
	// The tests of connections in FIPS mode, compared with a crypto/tls that is in its own.
	{name: "all FIPS", env: []string{"OSSL_TEST_FIPS=1", "GODEBUG=fips140=on"}, apiOnly: true, fips: true},
}

// withAdapters are the versions under which the other modules' tests run too. They use the core's
// API only, so the oldest version, the newest, and the one with the longest support are enough.
var withAdapters = []string{"1.1", "3.5", "4.0"}

// A planned row is a version in a mode.
type planned struct {
	version version
	mode    mode
}

func (p planned) name() string { return strings.TrimSpace(p.version.name + " " + p.mode.name) }
func (p planned) adapters() bool {
	return (p.mode.name == "" || p.mode.name == "FIPS") && slices.Contains(withAdapters, p.version.rowsLike())
}

// goOnly reports whether the row also runs the tests that don't come to OpenSSL: once for each Go.
func (p planned) goOnly() bool { return p.mode.name == "" && p.version.rowsLike() == "3.5" }

// short reports whether the row's long tests do less, as with go test -short. The first row of 3.5,
// and FIPS mode's own tests, run in full, as 'make test TESTS=-long' does on the system's.
func (p planned) short() bool { return !p.goOnly() && p.mode.run != "FIPS" && !p.tested() }

// tested reports whether 'make test' runs the row's tests too, under the race detector.
func (p planned) tested() bool { return p.name() == "system" || p.name() == "system libssl" }

// other reports whether the row runs only if the options ask for it: a row of a release that Debian
// doesn't have, or one that others stand for. One row of the oldest 3.0 always runs, since that
// release differs most from Debian's 3.0.
func (p planned) other() bool {
	switch p.name() {
	case "new", "new libssl", "new sessions", "3.5 libssl", "3.5 sessions", "system sessions": // between the rows of 1.1 and 4.0
		return true
	}
	return strings.HasSuffix(p.version.name, "-source") && p.name() != oldest
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
				// One version is enough: the one whose provider is the next to be validated.
				if _, err := os.Stat(v.fipsConfig()); v.rowsLike() != "3.5" || err != nil {
					continue
				}
				m.env = append(slices.Clip(m.env), "OPENSSL_CONF="+v.fipsConfig())
			}
			if m.only != nil && !slices.Contains(m.only, v.rowsLike()) {
				continue
			}
			if (v.emulated || v.musl) && m.name != "" {
				continue // a processor or a C library makes a difference to each function, not to which are called
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
