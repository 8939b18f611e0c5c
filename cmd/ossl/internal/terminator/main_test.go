package terminator_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets all tests that wait for timeouts do so at the same time.
func TestMain(m *testing.M) {
	if how, ok := os.LookupEnv("TEST_SUCCESSOR"); ok {
		succeed(how)
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
