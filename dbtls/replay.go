package dbtls

import (
	"net"
	"sync"

	"github.com/ossl-go/ossl"
)

// A replayConn is a TLS connection whose first bytes are given: those that a client expects from a
// server before TLS. It has no other methods of *ossl.Conn, since they pass these bytes by.
type replayConn struct {
	net.Conn // tls
	tls      *ossl.Conn
	mu       sync.Mutex
	first    []byte // guarded by mu
}

func newReplayConn(conn *ossl.Conn, first []byte) *replayConn {
	return &replayConn{Conn: conn, tls: conn, first: first}
}

func (c *replayConn) tlsConn() *ossl.Conn { return c.tls }

// Read reads the given bytes, and then from the server.
func (c *replayConn) Read(b []byte) (int, error) {
	if n := c.replay(b); n > 0 || len(b) == 0 {
		return n, nil
	}
	return c.tls.Read(b)
}

// replay copies the given bytes that are left.
func (c *replayConn) replay(b []byte) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := copy(b, c.first)
	if c.first = c.first[n:]; len(c.first) == 0 {
		c.first = nil
	}
	return n
}
