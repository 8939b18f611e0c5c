package netio

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// An Input is the ciphertext that was read from a connection and not consumed yet.
type Input struct {
	Data []byte // within buf

	buf  *Buffer // nil while Data is empty
	bulk bool    // the last read filled a small buffer: the next one gets a larger one

	raw    syscall.RawConn // the socket itself, nil for other connections
	rawFn  func(fd uintptr) bool
	rawN   int
	rawErr error
	rawFD  int  // of the last read, -1 before it
	opened bool // Open was called
}

// Consume drops the first n bytes. If none is left, it returns the buffer to its pool.
func (in *Input) Consume(n int) {
	in.Data = in.Data[n:]
	if len(in.Data) == 0 && in.buf != nil {
		in.buf.Put()
		in.buf, in.Data = nil, nil
	}
}

// Set makes a copy of data the input, which must be empty.
func (in *Input) Set(data []byte) {
	if len(data) == 0 {
		return
	}
	in.bulk = len(data) >= smallSize
	pool := Small
	if in.bulk {
		pool = reads
	}
	if in.buf = pool.Get(); len(data) > len(in.buf.Mem) {
		in.buf.Put()
		in.buf = &Buffer{Mem: make([]byte, len(data))}
	}
	in.Data = in.buf.Mem[:copy(in.buf.Mem, data)]
}

// Fill appends one read from conn to the input. While it waits for a socket, it holds no buffer.
func (in *Input) Fill(conn net.Conn) error {
	in.Open(conn)
	pool := Small
	if in.bulk {
		pool = reads
	}
	if in.buf != nil { // behind the rest of an earlier read
		return in.fillBehind(conn, pool)
	}
	if in.raw != nil {
		return in.fillRaw(conn)
	}
	in.buf = pool.Get()
	n, err := in.read(conn, in.buf.Mem)
	in.took(n)
	return err
}

// fillBehind appends to existing input, which it moves to the start of a buffer of pool if it fits.
func (in *Input) fillBehind(conn net.Conn, pool *Pool) error {
	to := in.buf
	if to.pool != pool {
		if next := pool.Get(); len(in.Data) < len(next.Mem) {
			to = next
		} else {
			next.Put()
		}
	}
	n := len(in.Data)
	if to != in.buf || cap(in.Data) < len(to.Mem) { // not at the start of the buffer: reads of few bytes must not cost a copy each
		copy(to.Mem, in.Data)
	}
	if to != in.buf {
		in.buf.Put()
		in.buf = to
	}
	in.Data = to.Mem[:n]
	if n == len(to.Mem) {
		return errors.New("ossl: no progress with a full buffer")
	}
	got, err := in.read(conn, to.Mem[n:])
	in.bulk = n+got >= smallSize
	in.Data = to.Mem[:n+got]
	return err
}

// took records that a read into an empty buffer returned n bytes.
func (in *Input) took(n int) {
	in.bulk = n >= smallSize
	in.Data = in.buf.Mem[:n]
	if n == 0 {
		in.Consume(0)
	}
}

// read is conn.Read without the empty success that io.Reader allows.
func (in *Input) read(conn net.Conn, to []byte) (int, error) {
	for range 100 {
		n, err := conn.Read(to)
		if n > 0 {
			return n, nil // if there is an error too, the next read returns it again
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// Open finds the socket beneath the connection types of package net. A type that wraps one may read
// differently. The first Fill does it too.
func (in *Input) Open(conn net.Conn) {
	if in.opened {
		return
	}
	in.opened = true
	if !socketsSayWouldBlock {
		return
	}
	var sc syscall.Conn
	switch c := conn.(type) {
	case *net.TCPConn:
		sc = c
	case *net.UnixConn:
		sc = c
	default:
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	in.raw, in.rawFD = raw, -1
	in.rawFn = func(fd uintptr) bool {
		in.rawFD = int(fd)
		pool := Small
		if in.bulk {
			pool = reads
		}
		buf := pool.Get()
		for {
			in.rawN, in.rawErr = readSocket(fd, buf.Mem)
			if in.rawErr != syscall.EINTR {
				break
			}
		}
		if in.rawErr == syscall.EAGAIN {
			buf.Put() // others use it while we wait
			return false
		}
		in.buf = buf
		return true
	}
}

// fillRaw reads from the socket.
func (in *Input) fillRaw(conn net.Conn) error {
	err := in.raw.Read(in.rawFn)
	if err != nil { // closed, or the deadline passed: no read took place
		// No errors.As: net/http's server lets a deadline pass for every request, in a goroutine
		// with a small stack.
		if op, ok := err.(*net.OpError); ok && op.Op == "raw-read" {
			op.Op = "read" // it was made for this call
		}
		return err
	}
	if in.rawErr != nil {
		in.took(0)
		return opError("read", conn, in.rawErr)
	}
	in.took(in.rawN)
	if in.rawN == 0 {
		return io.EOF
	}
	return nil
}

// opError returns package net's error for a system call that has failed.
func opError(op string, conn net.Conn, err error) error {
	e := &net.OpError{Op: op, Source: conn.LocalAddr(), Addr: conn.RemoteAddr(), Err: os.NewSyscallError(op, err)}
	if e.Source != nil { // else package net could not get the address
		e.Net = e.Source.Network()
	}
	return e
}

// SendNow sends as much of b as the socket takes without waiting, regardless of deadlines, and
// returns the number of bytes: 0 if the connection isn't a socket, or is closed.
//
// Last means that the caller closes conn next, and that the peer has closed its side. If nothing
// more has arrived, b then leaves in the same segment as the end of the stream. Otherwise it leaves
// at once, because a socket that is closed with unread input resets the connection, and drops
// unsent data. If other descriptors keep the socket open, b leaves after some 200 ms.
func (in *Input) SendNow(conn net.Conn, b []byte, last bool) (int, error) {
	if in.raw == nil {
		return 0, nil
	}
	s := sends.Get().(*send)
	defer sends.Put(s)
	s.data, s.last, s.n, s.err = b, last, 0, nil
	closed := in.raw.Control(s.control)
	s.data = nil
	if closed != nil || s.err == nil || s.err == syscall.EAGAIN {
		return s.n, nil
	}
	return s.n, opError("write", conn, s.err)
}

// A send is a call of sendNow by RawConn.Control, whose function would be allocated for each call.
type send struct {
	data    []byte
	last    bool
	n       int
	err     error
	control func(fd uintptr)
}

var sends = sync.Pool{New: func() any {
	s := new(send)
	s.control = func(fd uintptr) { s.n, s.err = sendNow(fd, s.data, s.last) }
	return s
}}

// HasSocket reports whether the connection that Fill reads from is a socket of package net. It
// reports false before the first Fill.
func (in *Input) HasSocket() bool { return in.raw != nil }

// Socket returns the socket's descriptor, or -1 if the connection isn't a socket. It returns -1
// before the first Fill.
func (in *Input) Socket() int {
	if in.raw == nil {
		return -1
	}
	return in.rawFD
}

// Quiet reports whether the connection is a socket, and a read would wait. It doesn't wait itself.
func (in *Input) Quiet() bool {
	if in.raw == nil {
		return false
	}
	quiet := false
	err := in.raw.Control(func(fd uintptr) { quiet = nothingArrived(fd) })
	return err == nil && quiet
}

// Drain discards up to limit bytes that have arrived at a socket and were not read. It doesn't
// wait.
func (in *Input) Drain(limit int) {
	if in.raw == nil {
		return
	}
	buf := Small.Get()
	defer buf.Put()
	// Control rather than Read, which fails after the read deadline.
	_ = in.raw.Control(func(fd uintptr) {
		for left := limit; left > 0; {
			part := buf.Mem[:min(left, len(buf.Mem))]
			n := receiveNow(fd, part)
			if n < len(part) {
				return
			}
			left -= n
		}
	})
}

// Ended returns an error if nothing more can be done over conn: os.ErrDeadlineExceeded if a
// deadline of conn has passed, net.ErrClosed if conn was closed, io.EOF if peerEnded reports true
// for the socket. Otherwise, and if conn is not a socket, it returns nil.
func (in *Input) Ended(conn net.Conn, peerEnded func(fd uintptr) bool) error {
	in.Open(conn)
	if in.raw == nil {
		return nil
	}
	gone := false
	// These calls don't wait, and check the deadlines first.
	err := in.raw.Read(func(fd uintptr) bool {
		gone = peerEnded(fd)
		return true
	})
	if err == nil {
		err = in.raw.Write(func(uintptr) bool { return true })
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return os.ErrDeadlineExceeded
	case err != nil:
		return net.ErrClosed
	case gone:
		return io.EOF
	}
	return nil
}
