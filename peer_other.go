//go:build !unix

package ossl

// peerGone can't tell here.
func peerGone(uintptr) bool { return false }
