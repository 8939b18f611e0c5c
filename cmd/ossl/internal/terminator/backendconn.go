package terminator

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
)

// A backendConn is a connection that http.Transport uses for requests to a backend. It has no methods
// by which TLS could read past it.
type backendConn struct {
	net.Conn
	writes writes

	mu      sync.Mutex
	reading bool          // guarded by mu; a Read is under way
	closed  bool          // guarded by mu
	changed chan struct{} // guarded by mu; if it isn't nil, it is closed when a field of this group changes
	checked bool          // guarded by mu; http2 is known
	http2   bool          // guarded by mu
}

func (c *backendConn) Read(b []byte) (int, error) {
	c.change(func() { c.reading = true })
	n, err := c.Conn.Read(b)
	c.change(func() { c.reading = false })
	if errors.Is(err, io.EOF) { // which would complete a response without a length
		if reset := c.writes.confirmEnd(c.Conn); reset != nil {
			err = reset
		}
	}
	return n, err
}

func (c *backendConn) Write(b []byte) (int, error) { return c.writes.write(c.Conn, b) }

func (c *backendConn) Close() error {
	c.change(func() { c.closed = true })
	return c.Conn.Close()
}

// CloseWrite closes the connection for writing.
func (c *backendConn) CloseWrite() error { return closeWrite(c.Conn) }

// change wakes settle.
func (c *backendConn) change(set func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	set()
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// settle is called before a request uses a connection again. http.Transport may hand the connection
// over before it has looked behind the last response, and would take data there for the response to
// this request, whose client may be another one. So settle waits until the transport waits for data,
// or has closed the connection because there was some, or because the backend has closed it. It reports
// whether the connection is closed. secure is the connection with TLS, if the backend has TLS.
func (c *backendConn) settle(ctx context.Context, secure net.Conn) (closed bool) {
	for {
		c.mu.Lock()
		if !c.checked {
			c.checked = true
			if s, ok := secure.(interface{ ConnectionState() tls.ConnectionState }); ok {
				c.http2 = s.ConnectionState().NegotiatedProtocol == "h2" // its responses have numbers
			}
		}
		if c.http2 || c.closed || c.reading && !readable(c.Conn) {
			closed = c.closed
			c.mu.Unlock()
			return closed
		}
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// underTLS returns the connection under TLS, or conn itself.
func underTLS(conn net.Conn) net.Conn {
	for {
		c, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = c.NetConn()
	}
}

// socketOf returns the socket under TLS, and under a connection of http.Transport.
func socketOf(conn net.Conn) net.Conn {
	conn = underTLS(conn)
	if c, ok := conn.(*backendConn); ok {
		return c.Conn
	}
	return conn
}
