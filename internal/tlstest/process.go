package tlstest

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Self returns the command that started this process, without the program's arguments, for tests
// that need a process of their own. The scripts of ci/openssl-versions start it with a program
// loader, which gives it another OpenSSL and another C library than the system's.
func Self() []string {
	all, err := os.ReadFile("/proc/self/cmdline")
	if err != nil { // not on Linux
		return slices.Clone(os.Args[:1])
	}
	words := strings.Split(strings.TrimSuffix(string(all), "\x00"), "\x00")
	return slices.Clip(words[:len(words)-len(os.Args)+1])
}

// Threads returns the number of the process's threads, or skips the test if they can't be
// counted.
func Threads(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc: threads can't be counted")
	}
	n, err := strconv.Atoi(string(regexp.MustCompile(`Threads:\s+(\d+)`).FindSubmatch(status)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
