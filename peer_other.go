//go:build !linux

package ossl

// peerGone is atEnd here: there is no call that sees an end behind input.
func peerGone(fd uintptr) bool { return atEnd(fd) }
