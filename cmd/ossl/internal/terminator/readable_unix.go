//go:build unix

package terminator

import (
	"net"
	"syscall"
)

// readable reports whether a Read of a socket would not wait. A Read may be under way.
func readable(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true // it is closed
	}
	var peeked error
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, peeked = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err != nil || peeked != syscall.EAGAIN && peeked != syscall.EINTR
}
