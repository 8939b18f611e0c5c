package terminator

import (
	"bufio"
	"bytes"
	"io"
	"net"
)

// Hijack gives the connection to the caller, who reads all of the client's data from the connection
// itself. It ends when there is no progress in either direction.
func (w *progressWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := w.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.hijacked = true
	idle := newIdleConn(conn, w.timeout, new(activity))
	if n := rw.Reader.Buffered(); n > 0 { // the client hasn't waited for the response
		b, _ := rw.Reader.Peek(n) // can't fail: they are in the buffer
		idle.Conn = &earlyConn{conn, io.MultiReader(bytes.NewReader(bytes.Clone(b)), conn)}
	}
	return idle, bufio.NewReadWriter(bufio.NewReader(idle), rw.Writer), nil
}

// An earlyConn is a connection of which some data has been read before.
type earlyConn struct {
	net.Conn
	data io.Reader
}

func (c *earlyConn) Read(b []byte) (int, error) { return c.data.Read(b) }

// CloseWrite ends the sending. Both kinds of TLS connections can.
func (c *earlyConn) CloseWrite() error { return c.Conn.(closeWriter).CloseWrite() }

type closeWriter interface{ CloseWrite() error }
