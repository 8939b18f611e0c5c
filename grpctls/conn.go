package grpctls

import (
	"net"
	"syscall"

	"google.golang.org/grpc/mem"

	"github.com/ossl-go/ossl"
)

// A conn is a TLS connection in the form that gRPC's transports read from.
type conn struct{ *ossl.Conn }

// ReadOnReady waits for data from the peer, only then takes a buffer of size bytes from pool, and
// reads into it. gRPC's transports look for this method (it is in their package readyreader).
// Without it they hold a buffer of 32 KB for each connection, even if it is idle.
func (c conn) ReadOnReady(size int, pool mem.BufferPool) (buf *[]byte, n int, err error) {
	if err := c.WaitRead(); err != nil {
		return nil, 0, err
	}
	buf = pool.Get(size)
	n, err = c.Read(*buf)
	if n == 0 {
		pool.Put(buf)
		return nil, 0, err
	}
	return buf, n, err
}

// A socketConn is a conn that also gives access to its socket, for the socket options that channelz
// reports.
type socketConn struct {
	conn
	socket syscall.Conn
}

// SyscallConn returns the socket. Reading from it or writing to it corrupts the TLS connection.
func (c *socketConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	return rawSocket{raw}, nil
}

// A rawSocket has only the methods of a syscall.RawConn. By the others, package os finds package
// net's socket, and sends a file that is copied to the connection without TLS.
type rawSocket struct{ syscall.RawConn }

// wrap returns the connection for gRPC's transports.
func wrap(raw net.Conn, c *ossl.Conn) net.Conn {
	if socket, ok := raw.(syscall.Conn); ok {
		return &socketConn{conn{c}, socket}
	}
	return conn{c}
}
