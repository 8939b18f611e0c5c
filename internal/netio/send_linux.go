package netio

import "syscall"

// msgMore is MSG_MORE of linux/socket.h, on every architecture.
const msgMore = 0x8000

// sendNow sends b to a socket, or a part of it. It never waits, even if the socket is in blocking
// mode. If last is set and there is nothing to read, b waits for the end of the stream, unless the
// socket's SO_LINGER is set: with a time of 0, close drops all that has not been sent.
func sendNow(fd uintptr, b []byte, last bool) (int, error) {
	flags := syscall.MSG_NOSIGNAL
	if last && nothingToRead(fd) && !lingers(fd) {
		flags |= msgMore
	}
	return sendSome(fd, b, flags)
}

// nothingToRead reports whether a read of a socket would return the end, or wait.
func nothingToRead(fd uintptr) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n == 0 && err == nil || err == syscall.EAGAIN
}

// lingers reports whether SO_LINGER is set, or can't be read.
func lingers(fd uintptr) bool {
	// Of struct linger, an int is the first field, which is 1 or 0.
	on, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER)
	return on != 0 || err != nil
}
