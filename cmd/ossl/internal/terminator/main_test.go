package terminator_test

import (
	"flag"
	"os"
	"testing"
)

// beSuccessor reports whether this process was a broken successor of a server.
var beSuccessor = func() bool { return false }

// TestMain lets all tests that wait for timeouts do so at the same time.
func TestMain(m *testing.M) {
	if beSuccessor() {
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
