package tlstest

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A Pair makes two connected net.Conns: the client's and the server's.
type Pair func() (client, server net.Conn)

// NetPipe is net.Pipe: no buffer, so that every write waits for its read.
func NetPipe() (client, server net.Conn) { return net.Pipe() }

// Buffered is a pair over memory that never blocks a writer and never fails it because the other
// end is gone, so that the data that an end reads don't depend on which end was faster. See
// [PipeConn].
func Buffered() (client, server net.Conn) {
	c, s := NewPipe()
	return c, s
}

// Loopback is a TCP connection over 127.0.0.1.
func Loopback() (client, server net.Conn) { return Sockets("tcp", "127.0.0.1:0") }

// Sockets connects a client and a server over an address of a network of package net.
func Sockets(network, address string) (client, server net.Conn) {
	l := must(net.Listen(network, address))
	defer l.Close()
	type result struct {
		c   net.Conn
		err error
	}
	accepted := make(chan result, 1)
	go func() {
		c, err := l.Accept()
		accepted <- result{c, err}
	}()
	client = must(net.Dial(network, l.Addr().String()))
	r := <-accepted
	return client, must(r.c, r.err)
}

// A PipeConn is one end of a buffered pipe. Unlike TCP it loses nothing: data that was written
// before Close is read before EOF, and data written to a peer that has closed is dropped without an
// error.
type PipeConn struct {
	pipe    *pipe
	in, out *half
	wdl     deadline
}

// NewPipe returns the two ends of a buffered pipe.
func NewPipe() (*PipeConn, *PipeConn) {
	p := new(pipe)
	p.cond = sync.NewCond(&p.mu)
	return &PipeConn{pipe: p, in: &p.halves[0], out: &p.halves[1]}, &PipeConn{pipe: p, in: &p.halves[1], out: &p.halves[0]}
}

// One lock guards both directions, so that one look shows whether client and server wait for each
// other.
type pipe struct {
	mu     sync.Mutex
	cond   *sync.Cond
	halves [2]half
}

// A half is one direction.
type half struct {
	buf     []byte
	eof     bool // the writer has closed
	closed  bool // the reader has closed
	blocked int  // readers that wait
	dl      deadline
}

// starved reports whether a reader waits and nothing that has arrived will wake it.
func (h *half) starved() bool {
	return h.blocked > 0 && len(h.buf) == 0 && !h.eof && !h.closed && !h.dl.passed()
}

// A deadline is a time and the timer that wakes the goroutines that wait for it.
type deadline struct {
	t     time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.t.IsZero() && !time.Now().Before(d.t) }

func (d *deadline) set(t time.Time, wake func()) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.t = t
	if !t.IsZero() {
		if left := time.Until(t); left > 0 {
			d.timer = time.AfterFunc(left, wake)
		}
	}
}

func (p *pipe) broadcast() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cond.Broadcast()
}

func pipeError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tlstest", Source: pipeAddr{}, Addr: pipeAddr{}, Err: err}
}

// Read implements net.Conn.
func (c *PipeConn) Read(p []byte) (int, error) {
	c.pipe.mu.Lock()
	defer c.pipe.mu.Unlock()
	h := c.in
	for {
		switch {
		case h.closed:
			return 0, pipeError("read", net.ErrClosed)
		case h.dl.passed():
			return 0, pipeError("read", os.ErrDeadlineExceeded)
		case len(p) == 0:
			return 0, nil
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = h.buf[n:]
			return n, nil
		case h.eof:
			return 0, io.EOF
		}
		h.blocked++
		c.pipe.cond.Broadcast()
		c.pipe.cond.Wait()
		h.blocked--
	}
}

// Write implements net.Conn. It never blocks.
func (c *PipeConn) Write(p []byte) (int, error) {
	c.pipe.mu.Lock()
	defer c.pipe.mu.Unlock()
	h := c.out
	switch {
	case h.eof:
		return 0, pipeError("write", net.ErrClosed)
	case c.wdl.passed():
		return 0, pipeError("write", os.ErrDeadlineExceeded)
	}
	if !h.closed {
		h.buf = append(h.buf, p...)
		c.pipe.cond.Broadcast()
	}
	return len(p), nil
}

// CloseWrite closes the outgoing direction: the peer reads EOF after the data.
func (c *PipeConn) CloseWrite() error {
	c.pipe.mu.Lock()
	defer c.pipe.mu.Unlock()
	c.out.eof = true
	c.pipe.cond.Broadcast()
	return nil
}

// Close implements net.Conn.
func (c *PipeConn) Close() error {
	c.pipe.mu.Lock()
	defer c.pipe.mu.Unlock()
	c.out.eof = true
	c.in.closed = true
	c.in.buf = nil
	c.pipe.cond.Broadcast()
	return nil
}

// WaitStarved returns true when a Read of this end waits with nothing to read, and false when
// either end is closed.
func (c *PipeConn) WaitStarved() bool { return c.pipe.wait(c.in) }

// WaitStuck returns true when a Read of each end waits with nothing to read, so that neither will
// ever return, and false when either end is closed.
func (c *PipeConn) WaitStuck() bool { return c.pipe.wait(c.in, c.out) }

func (p *pipe) wait(halves ...*half) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		starved := true
		for _, h := range halves {
			if h.closed {
				return false
			}
			starved = starved && h.starved()
		}
		if starved {
			return true
		}
		p.cond.Wait()
	}
}

// LocalAddr implements net.Conn.
func (c *PipeConn) LocalAddr() net.Addr { return pipeAddr{} }

// RemoteAddr implements net.Conn.
func (c *PipeConn) RemoteAddr() net.Addr { return pipeAddr{} }

// SetDeadline implements net.Conn.
func (c *PipeConn) SetDeadline(t time.Time) error {
	return firstError(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *PipeConn) SetReadDeadline(t time.Time) error {
	c.pipe.mu.Lock()
	defer c.pipe.mu.Unlock()
	c.in.dl.set(t, c.pipe.broadcast)
	c.pipe.cond.Broadcast()
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *PipeConn) SetWriteDeadline(t time.Time) error {
	c.pipe.mu.Lock()
	defer c.pipe.mu.Unlock()
	c.wdl.set(t, func() {})
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "tlstest" }
func (pipeAddr) String() string  { return "tlstest" }
