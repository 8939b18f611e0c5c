package ossltest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// An Exception is a set of tests that can't be run in FIPS mode.
type Exception struct {
	Tests  string // a regular expression for -test.skip
	Reason string
}

// Main runs the tests of a package. It is for TestMain. If the tests are run in FIPS mode it leaves
// out the exceptions, and prints them in a form that ci/matrixrun reads. If the environment asks
// for traps it sets them first.
func Main(m *testing.M, notInFIPS []Exception) {
	if InFIPS {
		flag.Parse()
		var patterns []string
		for _, e := range notInFIPS {
			fmt.Printf("left out: %s: %s\n", e.Tests, e.Reason)
			patterns = append(patterns, e.Tests)
		}
		if more := flag.Lookup("test.skip").Value.String(); more != "" {
			patterns = append(patterns, more)
		}
		flag.Set("test.skip", strings.Join(patterns, "|"))
	}
	if file := os.Getenv(envTraps); file != "" {
		if err := setTraps(file); err != nil {
			fmt.Fprintln(os.Stderr, "traps:", err)
			os.Exit(3)
		}
	}
	os.Exit(m.Run())
}
