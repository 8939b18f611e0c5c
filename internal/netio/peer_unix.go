//go:build unix

package netio

import "syscall"

// AtEnd reports whether a read of a socket would return the end or an error, with no input before
// it. It doesn't wait.
func AtEnd(fd uintptr) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	return n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
}

// nothingArrived reports whether a read of a socket would wait.
func nothingArrived(fd uintptr) bool {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	return err == syscall.EAGAIN
}
