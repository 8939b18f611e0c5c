package dbtls

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/ossl-go/ossl"
)

// maxPrelude bounds the bytes that a server may send before TLS begins, and maxLine bounds the
// length of a line: NATS's INFO lists the servers of a cluster.
const (
	maxPrelude = 64 << 10
	maxLine    = 16 << 10
)

// A prelude is the part of a connection before TLS.
type prelude struct {
	protocol string
	step     string // for errors
	raw      net.Conn
	in       *bufio.Reader // of raw, until TLS begins
	conn     *ossl.Conn    // over raw; its handshake has not begun
}

func newPrelude(protocol string, raw net.Conn, conn *ossl.Conn) *prelude {
	return &prelude{protocol: protocol, raw: raw, conn: conn, in: bufio.NewReaderSize(&limited{raw, maxPrelude}, maxLine)}
}

// limited is io.LimitedReader with an error of its own at the end.
type limited struct {
	r    io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left == 0 {
		return 0, fmt.Errorf("the server sent more than %d bytes before TLS", maxPrelude)
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// run runs upgrade, and interrupts it if ctx is done.
func (p *prelude) run(ctx context.Context, upgrade upgrade) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { p.raw.Close() })
	conn, err := upgrade(ctx, p)
	if err == nil {
		err = p.sealed()
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, p.failed(ctx, err)
	}
	p.in = nil // a MySQL connection keeps p
	return conn, nil
}

// sealed returns an error if the server has sent bytes that nobody asked for. Those that arrive
// later meet the handshake, which takes them for a TLS record and fails.
func (p *prelude) sealed() error {
	if n := p.in.Buffered(); n > 0 {
		return fmt.Errorf("%w: %d bytes", ErrPlaintext, n)
	}
	return nil
}

// shakeHands runs the handshake.
func (p *prelude) shakeHands(ctx context.Context) error {
	p.step = "TLS handshake"
	if err := p.conn.HandshakeContext(ctx); err != nil {
		return p.failed(ctx, err)
	}
	return nil
}

// failed returns the error for the current step.
func (p *prelude) failed(ctx context.Context, err error) error {
	return &Error{p.protocol, p.step, ended(ctx, err)}
}

func (p *prelude) send(b []byte) error {
	_, err := p.raw.Write(b)
	return err
}

// line reads a line, without its end.
func (p *prelude) line() ([]byte, error) {
	line, err := p.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("the server sent a line of more than %d bytes: %s", maxLine, quote(line))
	case err != nil:
		return nil, err
	}
	line = line[:len(line)-1]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, nil
}

// full reads n bytes.
func (p *prelude) full(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(p.in, b)
	return b, err
}

// TLSConn returns the TLS connection of a connection that a Dialer returned. ok is false for others.
// The TLS connection's Read and Write must not be called if conn is of another type.
func TLSConn(conn net.Conn) (c *ossl.Conn, ok bool) {
	switch conn := conn.(type) {
	case *ossl.Conn:
		return conn, true
	case interface{ tlsConn() *ossl.Conn }:
		return conn.tlsConn(), true
	}
	return nil, false
}
