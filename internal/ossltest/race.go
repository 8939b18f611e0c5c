//go:build race || asan

package ossltest

// Race reports whether the race detector or AddressSanitizer is on.
const Race = true
