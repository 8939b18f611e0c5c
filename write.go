package ossl

import (
	"crypto/tls"
	"errors"
	"net"

	"github.com/ossl-go/ossl/internal/libssl"
)

const (
	// maxChunk is how much plaintext one crossing seals: what fits a writeBuffer whatever the suite.
	maxChunk = recordsAtOnce * 16384
	// tcpMSSEstimate and recordSizeBoostThreshold are crypto/tls's parameters of dynamic record sizing.
	tcpMSSEstimate           = 1208
	recordSizeBoostThreshold = 128 * 1024
	maxSizedRecords          = 1000
)

// Write writes data to the connection. It runs the handshake first if that has not happened.
// After a Write that failed or timed out, the connection can't be written to: sealed records must not be lost.
func (c *Conn) Write(b []byte) (int, error) {
	if !c.beginWrite() {
		return 0, net.ErrClosed
	}
	if !c.complete.Load() {
		if err := c.handshakeToWrite(); err != nil {
			return 0, err
		}
	}
	c.writeMu.Lock()
	defer c.unlockWrite() // the connection beneath may panic
	return c.writeLocked(b)
}

// unlockWrite ends what beginWrite began, and gives writeMu back.
func (c *Conn) unlockWrite() {
	c.writeMu.Unlock()
	if c.queue.filled.Load() { // by a Read that could not take writeMu meanwhile, and left its output to us
		c.flushAndEndWrite()
	} else {
		c.endWrite()
	}
}

// handshakeToWrite runs the handshake for a Write, which is over if that fails or panics.
func (c *Conn) handshakeToWrite() error {
	err := errPanicked
	defer func() {
		if err != nil {
			c.endWrite()
		}
	}()
	err = c.Handshake()
	return err
}

func (c *Conn) flushAndEndWrite() {
	defer c.endWrite()
	c.flushFilled()
}

var errWritePanicked = errors.New("ossl: Write of the connection beneath panicked")

// send writes to the connection beneath. If that panics, nobody knows how much of a record was sent: nothing may follow. writeMu
// is held.
func (c *Conn) send(b []byte) error {
	before := c.writeErr
	c.writeErr = errWritePanicked
	_, err := c.conn.Write(b)
	c.writeErr = before
	return err
}

// beginWrite and endWrite interlock what sends with Close; beginWrite fails after it.
func (c *Conn) beginWrite() bool {
	for {
		x := c.activeCall.Load()
		if x&1 != 0 {
			return false
		}
		if c.activeCall.CompareAndSwap(x, x+2) {
			return true
		}
	}
}

func (c *Conn) endWrite() { c.activeCall.Add(-2) }

func (c *Conn) writeLocked(b []byte) (n int, err error) {
	if err := c.writable(); err != nil {
		return 0, err
	}
	if c.kernel != nil {
		return c.writeKernel(b)
	}
	for n < len(b) {
		written, err := c.seal(b[n:])
		n += written
		if err != nil {
			c.writeErr = permanent(err)
			return n, c.writeErr
		}
	}
	return n, nil
}

// writable returns why nothing can be written, or nil, and sees to it that the kernel seals if it is to. writeMu is held.
func (c *Conn) writable() error {
	if c.writeErr != nil {
		return c.writeErr
	}
	if c.closeNotifySent {
		return errShutdown
	}
	if c.ctx.kernelTLS && !c.kernelAsked && c.takenOver.Load() {
		c.kernelAsked = true
		if err := c.toKernel(); err != nil {
			c.writeErr = permanent(err)
			return c.writeErr
		}
	}
	return nil
}

// seal seals what one crossing can of b, and sends it.
func (c *Conn) seal(b []byte) (int, error) {
	payload := c.recordPayload()
	pool := smallBuffers
	// A small buffer holds a record of the largest size, or some small ones.
	limit := 16384
	if payload > 0 {
		limit = 8192
	}
	if len(b) > limit {
		pool = writeBuffers
		limit = maxChunk
	}
	if !c.takenOver.Load() { // which stops by itself, and between two records
		b = b[:min(len(b), limit)]
	}
	out := getBuffer(pool)
	n, err := c.sealInto(out, b, payload)
	out.put()
	return n, err
}

// sealInto seals what one crossing can of b into out, and sends it.
func (c *Conn) sealInto(out *buffer, b []byte, payload int) (int, error) {
	_, err := c.engine.lock()
	if err != nil {
		return 0, err
	}
	queued := c.queue.take()
	at := 0 // the offset in out of the new records: behind the queued ones, if there is room
	if len(queued) > 0 && len(queued)+c.firstRecord(b, payload) <= len(out.mem) {
		at = copy(out.mem, queued)
	}
	var step libssl.Step
	var failed error
	var moved <-chan struct{} // not nil if the rest of a message from the peer must be read first
	if c.takenOver.Load() {
		failed = c.sealOwn(&step, b, out.mem[at:], payload)
	} else if step = c.engine.ssl.Write(b, out.mem[at:], payload, c.packetsSent); step.Status == libssl.Fatal {
		_, failed = fatalError("write", c.engine.ssl, nil)
	} else if step.Status == libssl.WantRead && step.N == 0 && step.Produced == 0 {
		moved = c.awaitMove()
	}
	c.engine.unlock()

	if len(queued) > 0 && (at == 0 || failed != nil || moved != nil) { // they were sealed first, so they are sent first
		if err := c.send(queued); err != nil {
			return 0, err
		}
	}
	if failed != nil {
		return 0, failed
	}
	if moved != nil {
		return 0, c.finishMessage(moved)
	}
	if err := c.send(out.mem[:at+step.Produced]); err != nil {
		return 0, err
	}
	c.packetsSent += step.Records
	c.bytesSent += int64(step.Produced)
	return step.N, nil
}

// firstRecord returns an upper bound for the size of the first record of b: the room that libssl and sealOwn need at least.
func (c *Conn) firstRecord(b []byte, payload int) int {
	n := min(len(b), maxPlaintext)
	if payload > 0 {
		n = min(n, payload*(c.packetsSent+1))
	}
	return n + (n/512+2)*sealOverhead // a peer's max_fragment_length may split it; a KeyUpdate may come before it
}

// recordPayload returns how much plaintext makes a record that fits one TCP segment, 0 once records may have their full size: the
// i-th record holds at most i times as much. It is crypto/tls's maxPayloadSizeForWrite.
func (c *Conn) recordPayload() int {
	if c.ctx.config.DynamicRecordSizingDisabled || c.bytesSent >= recordSizeBoostThreshold || c.packetsSent > maxSizedRecords {
		return 0
	}
	overhead := recordHeaderLen + 16 // tag
	switch suite := c.state.CipherSuite; {
	case c.state.Version == tls.VersionTLS13:
		overhead++ // content type
	case suite == tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, suite == tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
	case c.takenOver.Load():
		overhead += 8 // explicit nonce
	default:
		overhead += 8 + 40 // the same, or IV, MAC and padding
	}
	return tcpMSSEstimate - overhead
}
