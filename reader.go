package ossl

import (
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/ossl-go/ossl/internal/netio"
)

// A reader is the receiving half of a connection. The handshake or a Read holds its lock, across
// crossings and network reads.
type reader struct {
	mu sync.Mutex // guards all fields but the atomic ones
	netio.Input
	err    error        // sticky
	opener opener       // nil until the handshake is done
	direct directOpener // the opener after a takeover

	cachedID []byte      // of the session in a server's cache, which a fatal alert removes
	silent   bool        // the first read of the network calls watchSilence
	watched  atomic.Bool // between watchSilence and heard
	released atomic.Bool // asks the holder of mu to free the opener when unlocking
}

// An opener opens the records that a connection receives. Its methods are called with the reader
// locked.
type opener interface {
	// open opens records of the input into b. It returns neither data nor an error if the input
	// stops within a record.
	open(in *reader, e *engine, b []byte) (int, error)
	// pending reports whether data that was opened before is left for open.
	pending() bool
	// readable reports whether open has something to work on, for WaitRead.
	readable(input []byte) bool
	// whole reports whether the received bytes end at a record's edge. Of these bytes, input is not
	// opened yet.
	whole(input []byte) bool
	// free frees the C memory of the reading side alone.
	free()
}

func (r *reader) lock() { r.mu.Lock() }

// tryLock locks the reader unless that would wait.
func (r *reader) tryLock() bool { return r.mu.TryLock() }

// unlock unlocks the reader, and frees the opener if release was called in the meantime.
func (r *reader) unlock() {
	r.mu.Unlock()
	if r.released.Load() {
		r.tryFree()
	}
}

// release frees the opener now, or when the reader is unlocked. It never waits.
func (r *reader) release() {
	r.released.Store(true)
	r.tryFree()
}

func (r *reader) tryFree() {
	if !r.mu.TryLock() {
		return
	}
	if r.opener != nil {
		r.opener.free()
	}
	r.mu.Unlock()
}

// Read reads data from the connection. It runs the handshake first if that has not happened.
//
// After the peer's close_notify, Read returns io.EOF. If the connection is closed without one, Read
// returns io.ErrUnexpectedEOF, unless [WithInsecureTruncation] is used: crypto/tls takes an end
// between two records for a regular one.
func (c *Conn) Read(b []byte) (int, error) {
	if !c.complete.Load() {
		if err := c.Handshake(); err != nil {
			return 0, err
		}
	}
	if len(b) == 0 {
		return 0, nil
	}
	for {
		var n int
		var err error
		if c.state.NegotiatedProtocol == "h2" {
			n, err = c.readDeep(b)
		} else {
			n, err = c.read(b)
		}
		if err == nil || n > 0 || !c.calls.interrupted(err) {
			return n, err
		}
	}
}

// readDeep reads for HTTP/2, and waits with as much of the stack in use as crypto/tls's Read does.
// Go gives a new goroutine a stack of the average size in use (GODEBUG=adaptivestackstart). With a
// smaller one, the goroutines that HTTP/2 begins for each request would have to grow their stacks
// several times, which takes a tenth of its time. TestStackOfRead compares the two packages.
//
//go:noinline
func (c *Conn) readDeep(b []byte) (int, error) { return c.readWith(stackRoom{}, b) }

// A stackRoom takes room on the stack of a function that passes it on.
type stackRoom [512]byte

//go:noinline
func (c *Conn) readWith(_ stackRoom, b []byte) (int, error) { return c.read(b) }

func (c *Conn) read(b []byte) (int, error) {
	if c.turns.beginRead(c.conn) {
		defer c.endRead()
	}
	c.in.lock()
	defer c.in.unlock()
	for {
		c.flushQueue(byCall) // before it waits or fails; all data that came before has been returned
		if c.in.err != nil {
			c.forgetSession(c.in.err) // of an alert that came behind data too
			return 0, c.in.err
		}
		if len(c.in.Data) > 0 || c.in.opener.pending() {
			n, err := c.in.opener.open(&c.in, &c.engine, b)
			if n > 0 {
				c.watch.didRead(n)
				return n, err
			}
			c.flushQueue(byCall)
			if err != nil {
				c.forgetSession(err)
				return 0, err
			}
		}
		if err := c.receive(); err != nil {
			return 0, err
		}
	}
}

// WaitRead waits until Read has something to work on: a record, the end, or an error, which it
// returns as Read would. It runs the handshake first if that has not happened. It decrypts nothing
// and, if the underlying connection is a socket, holds no buffer while it waits. So a program with
// many connections that are mostly silent needs no buffer for each:
//
//	if err := conn.WaitRead(); err != nil {
//		return err
//	}
//	buf := pool.Get().([]byte)
//	n, err := conn.Read(buf)
//
// The Read that follows may still block, since a record may hold no data.
func (c *Conn) WaitRead() error {
	if err := c.Handshake(); err != nil {
		return err
	}
	for {
		if err := c.waitOnce(); err == nil || !c.calls.interrupted(err) {
			return err
		}
	}
}

func (c *Conn) waitOnce() error {
	if c.turns.beginRead(c.conn) {
		defer c.endRead()
	}
	c.in.lock()
	defer c.in.unlock()
	for {
		c.flushQueue(byCall)
		if c.in.err != nil {
			return c.in.err
		}
		if c.in.opener.readable(c.in.Data) {
			return nil
		}
		if err := c.receive(); err != nil {
			return err
		}
	}
}

// receive reads from the network once. The reader is locked.
func (c *Conn) receive() error {
	if c.in.silent {
		c.in.silent = false
		c.watchSilence()
	}
	err := c.in.Fill(c.conn)
	if !c.isClient {
		c.heard()
	}
	return c.received(err)
}

// received returns the error of a read of the network, and keeps it if nothing can be read after
// it. The reader is locked.
func (c *Conn) received(err error) error {
	if err == io.EOF && !(c.context().opts.allowTruncation && c.in.opener.whole(c.in.Data)) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		//lint:ignore SA1019 crypto/tls makes errors sticky by the same rule
		if e, ok := err.(net.Error); !ok || !e.Temporary() { // a deadline may be moved
			c.in.err = permanent(err)
		}
	}
	return err
}
