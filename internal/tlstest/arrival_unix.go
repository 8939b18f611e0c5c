//go:build unix

package tlstest

import (
	"net"
	"syscall"
	"testing"
)

// Unhurried is a number of bytes that exceeds the buffers of a server's socket, so that the client
// still has some of them when it closes, but not the buffers of both sockets: the client can write
// them though the server doesn't read.
const Unhurried = 150_000

// AwaitArrival returns when something has arrived at a socket. It reads nothing.
func AwaitArrival(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return err != syscall.EAGAIN
	}); err != nil {
		t.Fatal(err)
	}
}

// MakeRoom makes room for Unhurried bytes in a client's socket.
func MakeRoom(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(2 * Unhurried); err != nil {
		t.Fatal(err)
	}
}
