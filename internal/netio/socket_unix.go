//go:build unix

package netio

import "syscall"

// socketsSayWouldBlock reports whether a read of a socket without input returns at once. Package
// net calls again when there is input.
const socketsSayWouldBlock = true

func readSocket(fd uintptr, p []byte) (int, error) { return syscall.Read(int(fd), p) }
