//go:build !unix

package netio

// AtEnd reports false: package syscall can't ask a socket on this system.
func AtEnd(uintptr) bool { return false }

// nothingArrived reports false, like AtEnd.
func nothingArrived(uintptr) bool { return false }
