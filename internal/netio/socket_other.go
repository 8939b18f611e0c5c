//go:build !unix

package netio

import "errors"

// socketsSayWouldBlock: elsewhere a read holds its buffer while it waits, in package net.
const socketsSayWouldBlock = false

func readSocket(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
