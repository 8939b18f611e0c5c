package grpctls

import (
	"net"
	"syscall"

	"google.golang.org/grpc/mem"

	"github.com/ossl-go/ossl"
)

// A conn is a TLS connection as gRPC's transports read it.
type conn struct{ *ossl.Conn }

// ReadOnReady waits for the peer, takes a buffer of size bytes from pool only then, and reads into it. gRPC's transports look for
// this method (it is in their package readyreader), and without it hold a buffer of 32 KB for each connection, however silent.
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

// A socketConn shows the socket beneath it besides, for the socket options that channelz tells.
type socketConn struct {
	conn
	socket syscall.Conn
}

// SyscallConn returns the socket. Reading from it or writing to it corrupts the TLS connection.
func (c *socketConn) SyscallConn() (syscall.RawConn, error) { return c.socket.SyscallConn() }

// wrap returns what gRPC's transports get.
func wrap(raw net.Conn, c *ossl.Conn) net.Conn {
	if socket, ok := raw.(syscall.Conn); ok {
		return &socketConn{conn{c}, socket}
	}
	return conn{c}
}
