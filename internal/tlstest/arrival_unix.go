//go:build unix

package tlstest

import (
	"net"
	"syscall"
	"testing"
)

// Unhurried bytes overflow one socket's buffers but not both: the client can write them all to a
// server that reads nothing, and still holds some when it closes.
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
