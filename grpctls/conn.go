package grpctls

import (
	"net"
	"syscall"

	"github.com/ossl-go/ossl"
)

// socketConn is a TLS connection that shows the socket beneath it, for the socket options that channelz tells.
type socketConn struct {
	*ossl.Conn
	socket syscall.Conn
}

// SyscallConn returns the socket. Reading from it or writing to it corrupts the TLS connection.
func (c *socketConn) SyscallConn() (syscall.RawConn, error) { return c.socket.SyscallConn() }

// wrap returns conn, with raw's socket if it has one.
func wrap(raw net.Conn, conn *ossl.Conn) net.Conn {
	if socket, ok := raw.(syscall.Conn); ok {
		return &socketConn{conn, socket}
	}
	return conn
}
