package terminator

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
)

// An upgrade is a change to another protocol, by a client and a backend. httputil.ReverseProxy copies
// the data of both directions, and closes both connections when a copy has failed. As with a TCP
// site, the end of a direction is passed on, and if one connection is cut off, so is the other one.
type upgrade struct {
	activity activity
	client   *upgradedConn
	cut      atomic.Bool // a connection is cut off, or times out
	// unheard means that the backend has closed while the client still sends. Used by the copy to the
	// backend alone.
	unheard bool
}

// An upgradedConn is the client's or the backend's connection of an upgrade.
type upgradedConn struct {
	*idleConn
	socket  net.Conn // without TLS
	upgrade *upgrade
}

func (c *upgradedConn) Read(b []byte) (int, error) {
	if c == c.upgrade.client && c.upgrade.unheard {
		return 0, io.EOF
	}
	n, err := c.idleConn.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		c.upgrade.cut.Store(true)
	}
	return n, err
}

func (c *upgradedConn) Write(b []byte) (int, error) {
	n, err := c.idleConn.Write(b)
	if err != nil && c.mayDrop(err) {
		return len(b), nil
	}
	return n, err
}

// CloseWrite closes the connection for writing.
func (c *upgradedConn) CloseWrite() error {
	if c != c.upgrade.client && c.upgrade.unheard {
		return nil
	}
	err := c.SetWriteDeadline(c.idle.in())
	if err == nil {
		err = c.idleConn.CloseWrite()
	}
	if err != nil && c.mayDrop(err) {
		return nil
	}
	return err
}

// mayDrop reports whether the client's data can be dropped, and drops it, after an error of sending.
// Otherwise the error cuts off both connections.
func (c *upgradedConn) mayDrop(err error) bool {
	if client := c.upgrade.client; c != client && hearsNoMore(&writeError{err}) {
		c.upgrade.unheard = true
		discard(client.idleConn)
		return true
	}
	c.upgrade.cut.Store(true)
	return false
}

// Close closes the end, with an RST if the upgrade is cut off, so that its peer doesn't take a part of
// the data for all of it. The peer gets all data that has come until then.
func (c *upgradedConn) Close() error {
	if c.upgrade.cut.Load() {
		awaitTaken(context.Background(), c.socket, c.idle) // a generation that shuts down closes the client's socket
		reset(c.socket)
	}
	return c.idleConn.Close()
}

// Hijack gives the connection to the caller, who reads all of the client's data from the connection
// itself. The connection times out if there is no progress in either direction.
func (w *progressWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.upgrade == nil {
		return nil, nil, errors.ErrUnsupported
	}
	_, rw, err := w.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.hijacked = true
	conn := w.http1.secure // what follows is no HTTP
	idle := newIdleConn(conn, w.timeout, &w.upgrade.activity)
	if n := rw.Reader.Buffered(); n > 0 { // the client hasn't waited for the response
		b, _ := rw.Reader.Peek(n) // can't fail: they are in the buffer
		idle.Conn = &earlyConn{conn, io.MultiReader(bytes.NewReader(bytes.Clone(b)), conn)}
	}
	end := &upgradedConn{idle, underTLS(conn), w.upgrade}
	w.upgrade.client = end
	return end, bufio.NewReadWriter(bufio.NewReader(end), rw.Writer), nil
}

// writerKey is the key of the *progressWriter in the context of a request that asks for an upgrade.
type writerKey struct{}

// upgraded returns the body of a response to such a request, by which the backend changes the protocol.
// conn is the connection to the backend, and body is http.Transport's.
func (w *progressWriter) upgraded(conn net.Conn, body io.ReadCloser) io.ReadCloser {
	w.upgrade = new(upgrade)
	idle := newIdleConn(&earlyConn{conn, body}, w.timeout, &w.upgrade.activity)
	socket := underTLS(conn)
	if c, ok := socket.(*backendConn); ok {
		socket = c.Conn
	}
	return &upgradedConn{idle, socket, w.upgrade}
}

func writerOf(ctx context.Context) *progressWriter {
	w, _ := ctx.Value(writerKey{}).(*progressWriter)
	return w
}

// An earlyConn is a connection with data that was read before.
type earlyConn struct {
	net.Conn
	data io.Reader
}

func (c *earlyConn) Read(b []byte) (int, error) { return c.data.Read(b) }

// CloseWrite closes the connection for writing.
func (c *earlyConn) CloseWrite() error { return closeWrite(c.Conn) }
