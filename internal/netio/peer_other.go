//go:build !linux

package netio

// PeerGone is AtEnd on this system, which has no call that sees the end of a stream after unread
// input.
func PeerGone(fd uintptr) bool { return AtEnd(fd) }
