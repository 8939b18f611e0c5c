package terminator

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// activity is the time of the last progress in either direction of a connection, in nanoseconds.
type activity struct{ last atomic.Int64 }

func (a *activity) note() { a.last.Store(time.Now().UnixNano()) }

// until returns the time at which a connection without progress must be closed.
func (a *activity) until(idle Time) time.Time {
	return time.Unix(0, a.last.Load()).Add(time.Duration(idle))
}

// An idleConn fails reads and writes when there has been no progress in either direction for some
// time. The two connections of a tunnel share the activity.
type idleConn struct {
	net.Conn
	idle     Time
	activity *activity
	rest     *rest  // nil if its reads never rest
	early    []byte // was read before
	writes   writes
}

func (c *idleConn) Read(b []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(b, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	for deadline := c.activity.until(c.idle); ; {
		if err := c.rest.setDeadline(c, deadline); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(b)
		if n > 0 {
			c.activity.note()
			return n, err
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		// The other direction may have had progress.
		if deadline = c.activity.until(c.idle); time.Until(deadline) <= 0 {
			return n, err
		}
	}
}

// Write has a deadline of its own: after a TLS Write has timed out, there can't be another one. A
// peer must take all of b in time.
func (c *idleConn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(c.idle.in()); err != nil {
		return 0, err
	}
	n, err := c.writes.write(c.Conn, b)
	if n > 0 {
		c.activity.note()
	}
	return n, err
}

// CloseWrite closes the connection for writing.
func (c *idleConn) CloseWrite() error { return closeWrite(c.Conn) }

// writes are a connection's, of which it remembers the last one's error.
type writes struct {
	mu  sync.Mutex // held by write
	err error      // guarded by mu
}

func (w *writes) write(conn net.Conn, b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := conn.Write(b)
	w.err = err
	return n, err
}

// confirmEnd returns an error if the io.EOF of a Read was not the peer's orderly end. A socket reports
// a reset once: if a Write gets the error, a Read at the same time meets an end of the stream.
func (w *writes) confirmEnd(conn net.Conn) error {
	if !isClosed(conn) {
		return nil
	}
	w.mu.Lock() // the Write of a closed socket doesn't wait
	defer w.mu.Unlock()
	if errors.Is(w.err, syscall.EPIPE) { // the reset came after the end
		return nil
	}
	return w.err
}

// closeWrite closes a connection for writing.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
