//go:build !unix

package netio

import "errors"

// socketsSayWouldBlock reports whether a read of a socket without input returns at once. On this
// system it waits in package net, and holds its buffer.
const socketsSayWouldBlock = false

func readSocket(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
