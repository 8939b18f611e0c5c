package ossl

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// input is the ciphertext that was read from the network and not yet taken by libssl. It belongs to
// the reader: the holder of Conn.readMu.
type input struct {
	buf  *buffer // nil while there is nothing
	data []byte  // within buf
	bulk bool    // the last read brought as much as the small buffer takes: offer a larger one

	raw    syscall.RawConn // the socket itself, nil for other connections
	rawFn  func(fd uintptr) bool
	rawN   int
	rawErr error
	opened bool // raw was asked for
}

// consume drops the first n bytes, and the buffer with the last.
func (in *input) consume(n int) {
	in.data = in.data[n:]
	if len(in.data) == 0 && in.buf != nil {
		in.buf.put()
		in.buf, in.data = nil, nil
	}
}

// set makes data the input, where there is none.
func (in *input) set(data []byte) {
	in.buf, in.data = &buffer{mem: data}, data
}

// fill reads once from conn, behind what is there. It blocks until there is something, without a
// buffer where conn is a socket.
func (in *input) fill(conn net.Conn) error {
	if !in.opened {
		in.open(conn)
	}
	pool := smallBuffers
	if in.bulk {
		pool = readBuffers
	}
	if in.buf != nil { // behind the rest of an earlier read
		return in.fillBehind(conn, pool)
	}
	if in.raw != nil {
		return in.fillRaw(conn)
	}
	in.buf = getBuffer(pool)
	n, err := in.read(conn, in.buf.mem)
	in.took(n)
	return err
}

// fillBehind reads behind what is there, which goes to the beginning of a buffer of pool, if it
// fits.
func (in *input) fillBehind(conn net.Conn, pool *sync.Pool) error {
	to := in.buf
	if to.pool != pool {
		if next := getBuffer(pool); len(in.data) < len(next.mem) {
			to = next
		} else {
			next.put()
		}
	}
	n := len(in.data)
	if to != in.buf || cap(in.data) < len(to.mem) { // it is not at the beginning: few bytes at a time must not cost a copy each
		copy(to.mem, in.data)
	}
	if to != in.buf {
		in.buf.put()
		in.buf = to
	}
	in.data = to.mem[:n]
	if n == len(to.mem) {
		return errors.New("ossl: no progress with a full buffer")
	}
	got, err := in.read(conn, to.mem[n:])
	in.bulk = n+got >= smallBuffer
	in.data = to.mem[:n+got]
	return err
}

// took notes what a read into an empty buffer brought.
func (in *input) took(n int) {
	in.bulk = n >= smallBuffer
	in.data = in.buf.mem[:n]
	if n == 0 {
		in.consume(0)
	}
}

// read is conn.Read without the empty success that io.Reader allows.
func (in *input) read(conn net.Conn, to []byte) (int, error) {
	for range 100 {
		n, err := conn.Read(to)
		if n > 0 {
			return n, nil // an error with it comes again
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// open finds the socket beneath the connection types of package net. A type that wraps one may read
// differently.
func (in *input) open(conn net.Conn) {
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
	in.raw = raw
	in.rawFn = func(fd uintptr) bool {
		pool := smallBuffers
		if in.bulk {
			pool = readBuffers
		}
		buf := getBuffer(pool)
		for {
			in.rawN, in.rawErr = readSocket(fd, buf.mem)
			if in.rawErr != syscall.EINTR {
				break
			}
		}
		if in.rawErr == syscall.EAGAIN {
			buf.put() // others use it while we wait
			return false
		}
		in.buf = buf
		return true
	}
}

// fillRaw reads from the socket.
func (in *input) fillRaw(conn net.Conn) error {
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
		e := &net.OpError{Op: "read", Source: conn.LocalAddr(), Addr: conn.RemoteAddr(), Err: os.NewSyscallError("read", in.rawErr)}
		if e.Source != nil { // else there was an error when package net asked for it
			e.Net = e.Source.Network()
		}
		return e
	}
	in.took(in.rawN)
	if in.rawN == 0 {
		return io.EOF
	}
	return nil
}
