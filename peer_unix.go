//go:build unix && !linux

package ossl

import "syscall"

// peerGone reports whether the peer of a socket has ended its side, or the connection was reset. It doesn't wait. It doesn't
// notice the peer's end behind data that has not been read.
func peerGone(fd uintptr) bool {
	n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
	return n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
}
