package tlstest

import (
	"os"
	"slices"
	"strings"
)

// Self returns how this process was started, without the program's arguments: for tests that need a process of their own. A
// program loader may have started it, with another OpenSSL and another C library than the system's, as ci/openssl-versions has
// it done.
func Self() []string {
	all, err := os.ReadFile("/proc/self/cmdline")
	if err != nil { // not on Linux
		return slices.Clone(os.Args[:1])
	}
	words := strings.Split(strings.TrimSuffix(string(all), "\x00"), "\x00")
	return slices.Clip(words[:len(words)-len(os.Args)+1])
}
