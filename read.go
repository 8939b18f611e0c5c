package ossl

import (
	"errors"
	"io"
	"net"

	"github.com/ossl-go/ossl/internal/libssl"
)

// Read reads data from the connection. It runs the handshake first if that has not happened.
//
// The peer's close_notify is io.EOF. An end without one is io.ErrUnexpectedEOF, wherever it comes: unlike crypto/tls, which takes
// an end between two records for a regular one, ossl reports every truncation.
func (c *Conn) Read(b []byte) (int, error) {
	if !c.complete.Load() {
		if err := c.Handshake(); err != nil {
			return 0, err
		}
	}
	if len(b) == 0 {
		return 0, nil
	}
	if c.state.NegotiatedProtocol == "h2" {
		return c.readDeep(b)
	}
	return c.read(b)
}

// readDeep reads for HTTP/2, and waits with as much of the stack in use as crypto/tls's Read does. Go gives new goroutines the
// average of what it finds in use (GODEBUG=adaptivestackstart); with less, those that HTTP/2 begins for each request have to grow
// theirs several times, which costs it a tenth of its time. TestStackOfRead compares.
//
//go:noinline
func (c *Conn) readDeep(b []byte) (int, error) { return c.readWith(stackRoom{}, b) }

// A stackRoom takes room on the stack of who passes it on.
type stackRoom [512]byte

//go:noinline
func (c *Conn) readWith(_ stackRoom, b []byte) (int, error) { return c.read(b) }

func (c *Conn) read(b []byte) (int, error) {
	if !c.takenOver.Load() {
		c.beginRead()
		defer c.endRead()
	}
	c.readMu.Lock()
	defer c.unlockRead()
	for {
		c.flushQueue() // before it waits or fails; what was read before has been handed out
		if c.readErr != nil {
			c.forgetSession(c.readErr) // of an alert that came behind data too
			return 0, c.readErr
		}
		if c.pending || len(c.in.data) > 0 {
			n, err := c.open(b)
			if n > 0 {
				return n, err
			}
			c.flushQueue()
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

// WaitRead waits until Read has something to work on: a record, the end, or an error, which it returns as Read would. It runs the
// handshake first if that has not happened. Nothing is decrypted, and while it waits it holds no buffer, if the connection
// beneath is a socket. So who reads many connections that are mostly silent needs no buffer for each:
//
//	if err := conn.WaitRead(); err != nil {
//		return err
//	}
//	buf := pool.Get().([]byte)
//	n, err := conn.Read(buf)
//
// The Read that follows can still have to wait, where a record holds no data.
func (c *Conn) WaitRead() error {
	if err := c.Handshake(); err != nil {
		return err
	}
	if !c.takenOver.Load() {
		c.beginRead()
		defer c.endRead()
	}
	c.readMu.Lock()
	defer c.unlockRead()
	for {
		c.flushQueue()
		if c.readErr != nil {
			return c.readErr
		}
		if c.readable() {
			return nil
		}
		if err := c.receive(); err != nil {
			return err
		}
	}
}

// readable reports whether there is input that Read can do something with. readMu is held.
func (c *Conn) readable() bool {
	data := c.in.data
	switch {
	case c.pending || c.opened.rest > 0:
		return true
	case !c.takenOver.Load():
		return len(data) > 0 // libssl takes parts of records too
	case len(data) < recordHeaderLen:
		return false
	}
	length := int(data[3])<<8 | int(data[4])
	return length > maxRecord(c.state.Version) || len(data) >= recordHeaderLen+length
}

// receive reads from the network once. readMu is held.
func (c *Conn) receive() error {
	err := c.in.fill(c.conn)
	c.heard()
	return c.received(err)
}

// received returns the error of a read of the network, and keeps it if nothing can be read after it. readMu is held.
func (c *Conn) received(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		//lint:ignore SA1019 crypto/tls makes errors sticky by the same rule
		if e, ok := err.(net.Error); !ok || !e.Temporary() { // a deadline may be moved
			c.readErr = permanent(err)
		}
	}
	return err
}

// open opens what is there of the input into b. It returns neither data nor error if a record is incomplete. readMu is held.
func (c *Conn) open(b []byte) (int, error) {
	if c.takenOver.Load() {
		return c.openOwn(b)
	}
	c.engine.mu.Lock()
	if c.engine.ssl == nil {
		c.engine.unlock()
		c.readErr = net.ErrClosed
		return 0, c.readErr
	}
	step := c.engine.ssl.Read(c.in.data, b)
	c.moved()
	if step.TakenOver {
		c.takenOver.Store(true)
		c.opened.begin(c.engine.ssl, c.state.Version, c.isClient)
		c.engine.split = true
	}
	sessions := c.engine.ssl.Sessions()
	var renegotiation bool
	spill := c.engine.ssl.Spill()
	if len(spill) > 0 && !c.queue.push(spill) {
		c.readErr = errQueueFull
	} else if step.Status == libssl.Fatal {
		c.readErr = c.readError(c.in.data[:step.Consumed])
	} else if _, description, ok := c.engine.ssl.AlertOut(); ok && description == alertNoRenegotiation {
		// libssl refuses by a warning and goes on; crypto/tls ends the connection.
		c.readErr = localError(alertNoRenegotiation, nil)
		renegotiation = true
	}
	c.engine.unlock()

	c.in.consume(step.Consumed)
	c.pending = step.Pending
	c.keepSessions(sessions)
	c.flushQueue()
	if c.readErr != nil {
		if renegotiation {
			c.failWrites(c.readErr)
		}
		if step.N > 0 {
			return step.N, nil // what came before is good; the error comes with the next call
		}
		return 0, c.readErr
	}
	if step.Status == libssl.Closed {
		c.readErr = io.EOF
		return step.N, io.EOF
	}
	return step.N, nil
}

var errQueueFull = errors.New("ossl: the peer asks for key updates and does not read the answers")

// readError turns a fatal read into the error that crypto/tls returns. mu is held.
func (c *Conn) readError(consumed []byte) error {
	_, err := fatalError("read", c.engine.ssl, consumed)
	return err
}

// failWrites makes Writes fail, without waiting for one that is under way.
func (c *Conn) failWrites(err error) {
	if c.writeMu.TryLock() {
		if c.writeErr == nil {
			c.writeErr = err
		}
		c.writeMu.Unlock()
	}
}
