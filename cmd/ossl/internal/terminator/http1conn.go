package terminator

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl"
)

// An http1Conn is a client's HTTP/1 connection, after the handshake, as net/http has it.
type http1Conn struct {
	net.Conn // with TLS
	secure   tlsConn
	framing  framing
	requests int64       // that have reached the handler; used by net/http's goroutine alone
	ended    atomic.Bool // the last request has been answered
	exit     *exit
}

// A fileConn is an http1Conn that can send files by sendfile(2). net/http treats all connections with
// ReadFrom as if they could, which costs the others time.
type fileConn struct{ *http1Conn }

func (c fileConn) ReadFrom(r io.Reader) (int64, error) { return c.secure.(*ossl.Conn).ReadFrom(r) }

// forHTTP1 returns the connection to give to net/http, and its http1Conn.
func forHTTP1(secure tlsConn, e *exit) (net.Conn, *http1Conn) {
	c := &http1Conn{Conn: secure, secure: secure, exit: e}
	if sender, ok := secure.(*ossl.Conn); ok && sender.SendsFiles() {
		return fileConn{c}, c
	}
	return c, c
}

func (c *http1Conn) Read(b []byte) (int, error) {
	for {
		if c.ended.Load() {
			return 0, io.EOF
		}
		n, err := c.Conn.Read(b)
		c.framing.scan(b[:n])
		if n > 0 {
			c.exit.heard(c.Conn)
		} else if isTimeout(err) {
			switch c.exit.take(c.Conn, c.framing.between(c.requests)) {
			case exitTaken:
				return 0, err // at which net/http closes the connection without a response
			case exitClosed:
				continue
			}
		}
		return n, err
	}
}

// SetReadDeadline sets the deadline of Reads.
func (c *http1Conn) SetReadDeadline(t time.Time) error { return c.exit.setDeadline(c.Conn, t) }

// ConnectionState is for net/http, which fills Request.TLS.
func (c *http1Conn) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }

// SetIdle notes whether no request is under way. net/http's goroutine calls it, and doesn't read meanwhile.
func (c *http1Conn) SetIdle(idle bool) {
	c.exit.setIdle(c.Conn, idle, idle && c.framing.between(c.requests))
	if conn, ok := c.secure.(*ossl.Conn); ok {
		conn.SetIdle(idle)
	}
}

// NetConn returns the connection without TLS.
func (c *http1Conn) NetConn() net.Conn { return c.secure.NetConn() }

// CloseWrite closes the connection for writing.
func (c *http1Conn) CloseWrite() error { return c.secure.CloseWrite() }

// refuses counts a request that has reached the handler, and reports whether its framing is ambiguous. c
// is nil for HTTP/2, which has frames.
func (c *http1Conn) refuses() bool {
	if c == nil {
		return false
	}
	c.requests++
	return c.framing.refuses(c.requests)
}

// end is called when a request has been answered although a part of its body is missing: nothing more
// is read as a request, and Close lingers.
func (c *http1Conn) end() { c.ended.Store(true) }

// Times of a connection that lingers: between two reads, and in all.
const (
	lingerIdle  = 2 * time.Second
	lingerTotal = 10 * time.Second
)

// Close closes the connection. After end it first reads and drops the data of the client, which would
// otherwise be answered with a reset, and that could destroy the response before the client has read it
// (RFC 9112, section 9.6).
func (c *http1Conn) Close() error {
	if c.exit.taken() {
		return nil
	}
	if !c.ended.Load() {
		return c.Conn.Close()
	}
	last := time.Now().Add(lingerTotal)
	err := c.SetWriteDeadline(last)
	if err == nil {
		err = c.CloseWrite()
	}
	if err == nil {
		drop(c.NetConn(), last)
	}
	return c.Conn.Close()
}

// drop reads and drops the data of a connection until the peer closes it, pauses for lingerIdle, or a
// time has come.
func drop(conn net.Conn, last time.Time) {
	b := buffers{}.Get()
	defer buffers{}.Put(b)
	for now := time.Now(); now.Before(last); now = time.Now() {
		if conn.SetReadDeadline(earlier(now.Add(lingerIdle), last)) != nil {
			return
		}
		if _, err := conn.Read(b); err != nil {
			return
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
