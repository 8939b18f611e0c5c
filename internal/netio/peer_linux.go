package netio

import (
	"syscall"
	"unsafe"
)

// poll(2) and asm-generic/poll.h.
const (
	pollErr   = 0x8
	pollHup   = 0x10
	pollRdHup = 0x2000
)

// PeerGone reports whether the peer of a socket has closed its side, or the connection was reset.
// It doesn't wait.
func PeerGone(fd uintptr) bool {
	ask := struct {
		fd              int32
		events, revents int16
	}{fd: int32(fd), events: pollRdHup}
	var atOnce [2]int64 // a zero struct timespec, of 8 or 16 bytes
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&ask)), 1,
		uintptr(unsafe.Pointer(&atOnce)), 0, 0, 0)
	return errno == 0 && n == 1 && ask.revents&(pollErr|pollHup|pollRdHup) != 0
}
