package tlstest

import (
	"net"
	"sync"
	"time"
)

// A Fault changes the bytes that one end writes. It gets them in order and returns the bytes to
// send in their place; it may keep some back for later. Faults have state: make one for each
// connection.
type Fault interface {
	// Pass takes p and returns the chunks to write now, and whether to close the direction (the
	// peer reads EOF) after them.
	Pass(p []byte) (chunks [][]byte, end bool)
}

// A Flusher is a Fault that holds bytes back until its end reads.
type Flusher interface {
	Flush() [][]byte
}

// A FaultConn is a net.Conn whose writes go through a Fault.
type FaultConn struct {
	net.Conn

	mu    sync.Mutex
	fault Fault
	ended bool
}

// WithFault wraps conn so that its writes go through fault. A nil fault changes nothing.
func WithFault(conn net.Conn, fault Fault) net.Conn {
	if fault == nil {
		return conn
	}
	return &FaultConn{Conn: conn, fault: fault}
}

// Write implements net.Conn. Bytes that the fault keeps or drops count as written.
func (c *FaultConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return len(p), nil
	}
	chunks, end := c.fault.Pass(append([]byte(nil), p...))
	if err := c.send(chunks); err != nil {
		return 0, err
	}
	if end {
		c.ended = true
		if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
			return len(p), w.CloseWrite()
		}
		return len(p), c.Conn.Close()
	}
	return len(p), nil
}

func (c *FaultConn) send(chunks [][]byte) error {
	for _, chunk := range chunks {
		if len(chunk) == 0 {
			continue
		}
		if _, err := c.Conn.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

func (c *FaultConn) flush() error {
	f, ok := c.fault.(Flusher)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.send(f.Flush())
}

// Read implements net.Conn.
func (c *FaultConn) Read(p []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Close implements net.Conn.
func (c *FaultConn) Close() error { return firstError(c.flush(), c.Conn.Close()) }

// SetWriteDeadline implements net.Conn. Earlier Writes are not subject to it.
func (c *FaultConn) SetWriteDeadline(t time.Time) error {
	return firstError(c.flush(), c.Conn.SetWriteDeadline(t))
}

// SetDeadline implements net.Conn.
func (c *FaultConn) SetDeadline(t time.Time) error {
	return firstError(c.flush(), c.Conn.SetDeadline(t))
}

type faultFunc func(p []byte) ([][]byte, bool)

func (f faultFunc) Pass(p []byte) ([][]byte, bool) { return f(p) }

// CutAfter passes n bytes and then closes the direction.
func CutAfter(n int) Fault {
	return faultFunc(func(p []byte) ([][]byte, bool) {
		if len(p) < n {
			n -= len(p)
			return [][]byte{p}, false
		}
		p = p[:n]
		n = 0
		return [][]byte{p}, true
	})
}

// HangAfter passes n bytes and then drops everything: the peer waits for ever.
func HangAfter(n int) Fault {
	return faultFunc(func(p []byte) ([][]byte, bool) {
		p = p[:min(n, len(p))]
		n -= len(p)
		return [][]byte{p}, false
	})
}

// FlipAt flips the bits of mask in the byte at an offset.
func FlipAt(offset int, mask byte) Fault {
	return faultFunc(func(p []byte) ([][]byte, bool) {
		if 0 <= offset && offset < len(p) {
			p[offset] ^= mask
		}
		offset -= len(p)
		return [][]byte{p}, false
	})
}

// Chunks splits the data into writes of at most n bytes.
func Chunks(n int) Fault {
	return faultFunc(func(p []byte) (chunks [][]byte, end bool) {
		for len(p) > 0 {
			m := min(n, len(p))
			chunks = append(chunks, p[:m])
			p = p[m:]
		}
		return chunks, false
	})
}

// Delay waits before each write.
func Delay(d time.Duration) Fault {
	return faultFunc(func(p []byte) ([][]byte, bool) {
		time.Sleep(d)
		return [][]byte{p}, false
	})
}

// Insert puts data in front of the byte at an offset.
func Insert(offset int, data []byte) Fault {
	done := false
	return faultFunc(func(p []byte) ([][]byte, bool) {
		if done || offset >= len(p) {
			offset -= len(p)
			return [][]byte{p}, false
		}
		done = true
		return [][]byte{p[:offset], data, p[offset:]}, false
	})
}

// Coalesce keeps the data until its end reads, and sends them in one piece.
func Coalesce() Fault { return &coalesce{} }

type coalesce struct{ kept []byte }

func (c *coalesce) Pass(p []byte) ([][]byte, bool) {
	c.kept = append(c.kept, p...)
	return nil, false
}

func (c *coalesce) Flush() [][]byte {
	kept := c.kept
	c.kept = nil
	return [][]byte{kept}
}

// Records gives each complete record, header included, with its number from 0, to edit, which
// returns the records to send instead: no records drop it, and a nil element closes the direction.
func Records(edit func(i int, record []byte) [][]byte) Fault {
	var kept []byte
	i := 0
	return faultFunc(func(p []byte) (chunks [][]byte, end bool) {
		kept = append(kept, p...)
		for len(kept) >= recordHeaderLen {
			n := recordHeaderLen + int(kept[3])<<8 + int(kept[4])
			if len(kept) < n {
				break
			}
			for _, chunk := range edit(i, append([]byte(nil), kept[:n]...)) {
				if chunk == nil {
					return chunks, true
				}
				chunks = append(chunks, chunk)
			}
			kept = kept[n:]
			i++
		}
		return chunks, false
	})
}

// HangAfterRecords passes n records and then drops everything.
func HangAfterRecords(n int) Fault {
	return Records(func(i int, record []byte) [][]byte {
		if i < n {
			return [][]byte{record}
		}
		return nil
	})
}
