package dbtls

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ossl-go/ossl"
)

// A mysqlConn is the connection that a driver takes for one without TLS. In the connection phase,
// which lasts until the server's OK, the server counts a packet that the driver doesn't know of,
// the request for TLS: so the numbers of packets are changed in both directions.
type mysqlConn struct {
	net.Conn // p.conn
	p        *prelude
	deadline time.Time // of the handshake
	first    *replayConn

	begun   atomic.Bool // TLS is there
	settled atomic.Bool // the connection phase is over: bytes pass as they are

	writeDeadline atomic.Pointer[time.Time]
	out           sync.Mutex // held by Write, and by the handshake in it
	request       []byte     // guarded by out: the bytes that the driver has written before TLS
	err           error      // guarded by out: the reason why there is no TLS
	sent          renumberer // guarded by out

	in       sync.Mutex
	received renumberer // guarded by in
}

func newMySQLConn(p *prelude, greeting []byte, deadline time.Time) *mysqlConn {
	return &mysqlConn{
		Conn: p.conn, p: p, deadline: deadline, first: newReplayConn(p.conn, greeting),
		sent: renumberer{step: fromClient}, received: renumberer{step: fromServer},
	}
}

func (c *mysqlConn) tlsConn() *ossl.Conn { return c.p.conn }

// SyscallConn returns the socket. go-sql-driver/mysql reads from it to learn whether the server has
// closed an idle connection, and gives the connection up if it receives anything.
func (c *mysqlConn) SyscallConn() (syscall.RawConn, error) {
	conn, ok := c.p.raw.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}

// SetDeadline sets the read and write deadlines.
func (c *mysqlConn) SetDeadline(t time.Time) error {
	c.writeDeadline.Store(&t)
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline sets the write deadline. It applies to all of the handshake if it is set before.
func (c *mysqlConn) SetWriteDeadline(t time.Time) error {
	c.writeDeadline.Store(&t)
	return c.Conn.SetWriteDeadline(t)
}

// Read reads the greeting, and then from the server.
func (c *mysqlConn) Read(b []byte) (int, error) {
	if n := c.first.replay(b); n > 0 || len(b) == 0 {
		return n, nil
	}
	if !c.begun.Load() {
		return 0, &Error{c.p.protocol, "greeting", errors.New("the client must answer the server's greeting before it reads on")}
	}
	if c.settled.Load() {
		return c.Conn.Read(b)
	}
	c.in.Lock()
	defer c.in.Unlock()
	n, err := c.Conn.Read(b)
	if !c.settled.Load() {
		if _, last := c.received.renumber(b[:n]); last {
			c.settled.Store(true)
		}
	}
	return n, err
}

// Write writes to the server, over TLS. The first bytes begin it.
func (c *mysqlConn) Write(b []byte) (int, error) {
	if c.settled.Load() {
		return c.Conn.Write(b)
	}
	c.out.Lock()
	defer c.out.Unlock()
	switch {
	case c.err != nil:
		return 0, c.err
	case c.settled.Load():
		return c.Conn.Write(b)
	case c.begun.Load():
		own := append([]byte(nil), b...)
		c.sent.renumber(own)
		return c.Conn.Write(own)
	}
	n := min(len(b), sslRequestSize-len(c.request))
	c.request = append(c.request, b[:n]...)
	if len(c.request) < sslRequestSize {
		return n, nil
	}
	if c.err = c.begin(); c.err != nil {
		return n, c.err // the request had these bytes, or should have had them
	}
	c.begun.Store(true)
	own := append(c.request, b[n:]...)
	c.request = nil
	c.sent.renumber(own)
	if sent, err := c.Conn.Write(own); err != nil {
		return max(n, n+sent-sslRequestSize), err
	}
	return len(b), nil
}

// sslRequestSize is the size of the packet SSLRequest: a header, and the first fields of the
// HandshakeResponse, which are capabilities, the largest packet and a character set, filled up.
const sslRequestSize = mysqlHeader + 32

// begin asks for TLS with the first fields of the driver's HandshakeResponse, adds TLS to its
// capabilities there too, and runs the handshake.
func (c *mysqlConn) begin() error {
	c.p.step = "SSLRequest"
	header, capabilities := c.request[:mysqlHeader], binary.LittleEndian.Uint32(c.request[mysqlHeader:])
	size := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
	switch {
	case size < sslRequestSize-mysqlHeader || header[3] != 1 || capabilities&mysqlProtocol41 == 0:
		return &Error{c.p.protocol, c.p.step, errors.New("the client's first packet is not a HandshakeResponse41")}
	case capabilities&mysqlTLS != 0:
		return &Error{c.p.protocol, c.p.step, errors.New("the client asks for TLS itself, which it must not be configured for")}
	}
	binary.LittleEndian.PutUint32(c.request[mysqlHeader:], capabilities|mysqlTLS)
	ctx, cancel := context.WithDeadline(context.Background(), c.deadline)
	defer cancel()
	if t := c.writeDeadline.Load(); t != nil && !t.IsZero() {
		ctx, cancel = context.WithDeadlineCause(ctx, *t, os.ErrDeadlineExceeded)
		defer cancel()
	}
	request := append([]byte{sslRequestSize - mysqlHeader, 0, 0, header[3]}, c.request[mysqlHeader:]...)
	err := c.p.send(request)
	if err == nil {
		c.p.step = "TLS handshake"
		err = c.p.conn.HandshakeForWrite(ctx) // the answer follows
	}
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) == os.ErrDeadlineExceeded: // net.Conn promises this error
		return &Error{c.p.protocol, c.p.step, os.ErrDeadlineExceeded}
	}
	return c.p.failed(ctx, err)
}

// A renumberer changes the numbers of the packets in a stream.
type renumberer struct {
	step byte // that is added to each number
	at   int  // bytes of the header that were seen
	size int  // of the packet
	left int  // bytes of the packet's body that were not seen
}

// fromServer is the step for packets from servers, and fromClient for packets from clients.
const (
	fromServer = 0xff // -1
	fromClient = 1
)

// renumber changes the numbers of the packets in b, the next part of the stream. last reports
// whether b has the server's last packet of the connection phase. rest begins with its body, and is
// left as it is.
func (r *renumberer) renumber(b []byte) (rest []byte, last bool) {
	for len(b) > 0 {
		n := 1
		switch {
		case r.at < mysqlHeader-1:
			r.size |= int(b[0]) << (8 * r.at)
			r.at++
		case r.at == mysqlHeader-1:
			b[0] += r.step
			r.at, r.left = mysqlHeader, r.size
		case r.step == fromServer && r.left == r.size && (b[0] == mysqlOK || b[0] == mysqlError):
			return b, true
		default:
			n = min(r.left, len(b))
			r.left -= n
		}
		if r.at == mysqlHeader && r.left == 0 {
			r.at, r.size = 0, 0
		}
		b = b[n:]
	}
	return nil, false
}
