//go:build unix

package netio

import "syscall"

// socketsSayWouldBlock: a read of a socket that has nothing says so at once, and package net calls again when it has.
const socketsSayWouldBlock = true

func readSocket(fd uintptr, p []byte) (int, error) { return syscall.Read(int(fd), p) }
