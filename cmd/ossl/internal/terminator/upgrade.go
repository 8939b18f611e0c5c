package terminator

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// An upgrade is a change to another protocol, by a client and a backend. httputil.ReverseProxy sends the
// response. Then both connections are passed on as those of a TCP site are: ReverseProxy would hold two
// buffers for each, and doesn't pass on how a connection ends.
type upgrade struct {
	client, backend     net.Conn // with TLS
	ofClient, ofBackend []byte   // was read before
	member              *member  // the backend
	answered            atomic.Bool
}

// errUpgraded is the error that ends ReverseProxy's copies when it has sent the response.
var errUpgraded = errors.New("the connections are passed on elsewhere")

// An upgradedConn is the client's or the backend's connection of an upgrade, for ReverseProxy. From its
// first read on, which follows the response, ReverseProxy does nothing with it.
type upgradedConn struct {
	net.Conn
	upgrade *upgrade
}

func (c *upgradedConn) Read([]byte) (int, error) {
	c.upgrade.answered.Store(true)
	return 0, errUpgraded
}

func (c *upgradedConn) Close() error {
	if c.upgrade.answered.Load() {
		return nil
	}
	return c.Conn.Close()
}

// Hijack gives the connection to ReverseProxy, after the backend has agreed to an upgrade.
func (w *progressWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	u := w.upgrade
	if u == nil {
		return nil, nil, errors.ErrUnsupported
	}
	_, rw, err := w.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.hijacked = true
	u.client = w.http1.secure                        // what follows is no HTTP
	early, _ := rw.Reader.Peek(rw.Reader.Buffered()) // can't fail: they are in the buffer
	u.ofClient = bytes.Clone(early)                  // the client hasn't waited for the response
	end := &upgradedConn{u.client, u}
	return end, bufio.NewReadWriter(bufio.NewReader(end), rw.Writer), nil
}

// writerKey is the key of the *progressWriter in the context of a request that asks for an upgrade.
type writerKey struct{}

// upgraded returns the body of a response to such a request, by which the backend changes the protocol.
// conn is the connection to the backend, and body is http.Transport's.
func (w *progressWriter) upgraded(conn net.Conn, body io.ReadCloser) io.ReadCloser {
	u := &upgrade{backend: conn, ofBackend: atHand(conn, body)}
	if c, ok := conn.(*backendConn); ok {
		u.backend = c.Conn
	}
	w.upgrade = u
	return &upgradedConn{u.backend, u}
}

// atHand reads what http.Transport has read of a connection behind a response.
func atHand(conn net.Conn, body io.Reader) (early []byte) {
	if conn.SetReadDeadline(time.Unix(1, 0)) != nil {
		return nil // it is closed
	}
	for b := make([]byte, 4096); ; {
		n, err := body.Read(b)
		early = append(early, b[:n]...)
		if err != nil {
			return early // the deadline has passed, or the next Read returns the error too
		}
	}
}

func writerOf(ctx context.Context) *progressWriter {
	w, _ := ctx.Value(writerKey{}).(*progressWriter)
	return w
}
