//go:build !linux

package netio

// PeerGone is AtEnd here: there is no call that sees an end behind input.
func PeerGone(fd uintptr) bool { return AtEnd(fd) }
