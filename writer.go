package ossl

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/ossl-go/ossl/internal/netio"
	"github.com/ossl-go/ossl/internal/record"
)

const (
	// maxChunk is the maximum of plaintext that one crossing seals. In every suite, its records fit
	// a buffer of netio.Bulk.
	maxChunk = netio.RecordsAtOnce * 16384
	// tcpMSSEstimate, recordSizeBoostThreshold and maxSizedRecords are crypto/tls's parameters of
	// dynamic record sizing.
	tcpMSSEstimate           = 1208
	recordSizeBoostThreshold = 128 * 1024
	maxSizedRecords          = 1000
)

// A writer is the sending half of a connection. Its lock is held across network writes, so that
// records leave in the order in which the engine sealed them.
type writer struct {
	mu     sync.Mutex  // guards all fields
	err    error       // sticky
	sizes  recordSizes // of the records sent so far
	sender sender      // the kernel's once it seals; replaced with the engine locked too

	kernelAsked     bool // the sending side was offered to the kernel: WithKernelTLS
	closeNotifySent bool
	closeNotifyErr  error
}

// recordSizes count the records sent so far, for dynamic record sizing.
type recordSizes struct {
	records int
	bytes   int64
}

// A sender sends application data and queued records. Its methods are called with the writer locked
// and the engine not.
type sender interface {
	// write protects and sends as much of b as one step can.
	write(c *Conn, b []byte) (int, error)
	// flush empties the queue, and sends it unless the occasion is discard.
	flush(c *Conn, as occasion) error
	// closeNotify sends the queue and close_notify. If free is set, it also frees the C memory.
	closeNotify(c *Conn, free bool) error
}

// A sealer seals the records that a connection sends. Its methods are called with the engine
// locked.
type sealer interface {
	// seal seals as much of b as one crossing can into out.
	seal(b, out []byte, limits sealLimits) (sealed, error)
	// overhead12 bounds the bytes that sealing adds to a TLS 1.2 record besides header and tag, if
	// the suite isn't ChaCha20-Poly1305.
	overhead12() int
	// closeNotify seals close_notify into out, unless an alert has aborted the connection before.
	// The result has an error if close_notify could not be sealed.
	closeNotify(out []byte) sealed
	// close is closeNotify, and frees the C memory for sending, and for reading unless a Read is
	// under way. Use [engine.close].
	close(in *reader, out []byte) sealed
	// free frees the C memory for sending, and for reading if the sides can't be freed apart.
	free()
}

// sealLimits bound the output of one call of seal.
type sealLimits struct {
	data    int         // at most this much data, if the sealer can't stop by itself when out is full
	payload int         // if not 0, the i-th record holds at most i times as much data
	sizes   recordSizes // of the records before
}

// sealed is the result of sealing.
type sealed struct {
	n        int // bytes of data
	produced int // bytes of records
	records  int
	moved    <-chan struct{} // not nil if the rest of a message from the peer must be read first
	err      error           // of closeNotify, if it could not be sealed
}

// Write writes data to the connection. It runs the handshake first if that has not happened. After
// a Write has failed or timed out, the connection can't be written to, because sealed records must
// not be lost.
func (c *Conn) Write(b []byte) (int, error) {
	if !c.calls.beginWrite() {
		return 0, c.calls.closedError()
	}
	if !c.complete.Load() {
		if err := c.handshakeToWrite(); err != nil {
			return 0, err
		}
	}
	c.out.mu.Lock()
	defer c.unlockWrite() // the underlying connection may panic
	return c.writeLocked(b)
}

// unlockWrite unlocks the writer and undoes beginWrite.
func (c *Conn) unlockWrite() {
	c.out.mu.Unlock()
	if c.engine.queue.filled.Load() { // by a Read that could not lock the writer
		c.flushAndEndWrite()
	} else {
		c.calls.endWrite()
	}
}

// handshakeToWrite runs the handshake for a Write, which is over if that fails or panics.
func (c *Conn) handshakeToWrite() error {
	err := errPanicked
	defer func() {
		if err != nil {
			c.calls.endWrite()
		}
	}()
	err = c.shakeHands(context.Background(), writeFollows)
	return err
}

func (c *Conn) flushAndEndWrite() {
	defer c.calls.endWrite()
	c.flushFilled(byCall)
}

var errWritePanicked = errors.New("ossl: Write of the underlying connection panicked")

// send writes records to the underlying connection. If that panics, it is unknown how much of a
// record was sent, so nothing may follow. The writer is locked.
func (c *Conn) send(b []byte) error {
	before := c.out.err
	c.out.err = errWritePanicked
	_, err := netio.WriteAll(c.conn, b)
	c.out.err = before
	return err
}

// writeLocked is Write with the writer locked.
func (c *Conn) writeLocked(b []byte) (n int, err error) {
	if err := c.writable(); err != nil {
		return 0, err
	}
	for n < len(b) {
		written, err := c.out.sender.write(c, b[n:])
		n += written
		c.watch.didWrite(int64(written))
		if err != nil {
			c.out.err = permanent(err)
			return n, c.out.err
		}
	}
	return n, nil
}

// writable returns the reason why nothing can be written, or nil. Before the first Write after a
// takeover it offers the sending side to the kernel, if the Context asks for that. The writer is
// locked.
func (c *Conn) writable() error {
	switch {
	case c.out.err != nil:
		return c.out.err
	case c.out.closeNotifySent:
		return errShutdown
	case c.context().kernelTLS && !c.out.kernelAsked:
		if err := c.toKernel(); err != nil {
			c.out.err = permanent(err)
			return c.out.err
		}
	}
	return nil
}

// A recordSender sends records that a sealer has made.
type recordSender struct{}

func (recordSender) write(c *Conn, b []byte) (int, error) {
	limits := sealLimits{data: 16384, sizes: c.out.sizes}
	pool := netio.Small
	small := c.sizesRecords()
	// A small buffer holds a record of the largest size, or some small ones.
	if small {
		limits.data = 8192
	}
	if len(b) > limits.data {
		pool = netio.Bulk
		limits.data = maxChunk
	}
	out := pool.Get()
	n, err := c.sealInto(out.Mem, b, limits, small)
	out.Put()
	return n, err
}

// sealInto seals as much of b as one crossing can into out, and sends it. If small is set, dynamic
// record sizing gives the records their sizes.
func (c *Conn) sealInto(out, b []byte, limits sealLimits, small bool) (int, error) {
	if _, err := c.engine.lock(); err != nil {
		return 0, err
	}
	sealer := c.engine.sealer
	if small {
		limits.payload = c.smallPayload(sealer.overhead12())
	}
	queued := c.engine.queue.take()
	at := 0 // the offset in out of the new records: behind the queued ones, if there is room
	if len(queued) > 0 && len(queued)+limits.firstRecord(b) <= len(out) {
		at = copy(out, queued)
	}
	result, failed := sealer.seal(b, out[at:], limits)
	c.engine.unlock()

	if len(queued) > 0 && (at == 0 || failed != nil || result.moved != nil) { // they were sealed first, so they are sent first
		if err := c.send(queued); err != nil {
			return 0, err
		}
	}
	if failed != nil {
		return 0, failed
	}
	if result.moved != nil {
		return 0, c.finishMessage(result.moved)
	}
	if err := c.send(out[:at+result.produced]); err != nil {
		return 0, err
	}
	c.out.sizes.records += result.records
	c.out.sizes.bytes += int64(result.produced)
	return result.n, nil
}

// firstRecord returns an upper bound for the size of the first record of b: the room that a sealer
// needs at least.
func (l sealLimits) firstRecord(b []byte) int {
	n := min(len(b), record.MaxPlaintext)
	if l.payload > 0 {
		n = min(n, l.payload*(l.sizes.records+1))
	}
	return n + (n/512+2)*netio.SealOverhead // a peer's max_fragment_length may split it; a KeyUpdate may come before it
}

// sizesRecords reports whether the next records are small, so that the first ones fit a TCP segment
// each: crypto/tls's maxPayloadSizeForWrite.
func (c *Conn) sizesRecords() bool {
	return !c.context().config.DynamicRecordSizingDisabled && c.out.sizes.bytes < recordSizeBoostThreshold &&
		c.out.sizes.records <= maxSizedRecords
}

// smallPayload returns how much data makes a record that fits one TCP segment, as far as crypto/tls
// estimates that.
func (c *Conn) smallPayload(overhead12 int) int {
	const tag, contentType = 16, 1
	payload := tcpMSSEstimate - record.HeaderLen - tag
	switch suite := c.state.CipherSuite; {
	case c.state.Version == tls.VersionTLS13:
		return payload - contentType
	case suite == tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, suite == tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return payload
	}
	return payload - overhead12
}

func (recordSender) flush(c *Conn, as occasion) error {
	c.engine.mu.Lock()
	queued := c.engine.queue.take()
	c.engine.unlock()
	if as == discard || len(queued) == 0 {
		return nil
	}
	if as == unasked {
		n, err := c.in.SendNow(c.conn, queued, false)
		if err != nil || n == len(queued) {
			return err
		}
		queued = queued[n:] // the socket is full
	}
	return c.send(queued)
}

func (recordSender) closeNotify(c *Conn, free bool) error {
	out := netio.Small.Get()
	defer out.Put()
	last, err := c.lastRecords(free, out.Mem)
	if err != nil {
		return err
	}
	if len(last) == 0 { // the connection has failed, and its alert was sent
		return nil
	}
	c.out.closeNotifyErr = c.sendLast(last, free)
	return c.out.closeNotifyErr
}

// sendLast sends the last records. If closing is set, the underlying connection is closed next.
func (c *Conn) sendLast(last []byte, closing bool) error {
	// Deadlines cost more than the write itself, so they are set only if the write may block.
	n, err := c.in.SendNow(c.conn, last, closing && c.peerEnded())
	if err != nil || n == len(last) {
		return err
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(closeNotifyTimeout))
	_, err = netio.WriteAll(c.conn, last[n:])
	_ = c.conn.SetWriteDeadline(time.Now()) // any later write fails
	return err
}

// peerEnded reports whether a Read has returned the peer's close_notify, with nothing behind it.
func (c *Conn) peerEnded() bool {
	if !c.in.tryLock() {
		return false
	}
	defer c.in.unlock()
	return c.in.err == io.EOF && len(c.in.Data) == 0
}

// lastRecords returns close_notify, behind the records that must be sent before it. The writer is
// locked.
func (c *Conn) lastRecords(free bool, out []byte) ([]byte, error) {
	for waiting := false; ; waiting = true {
		if _, err := c.engine.lock(); err != nil {
			return nil, err
		}
		var last sealed
		if free {
			last = c.engine.close(&c.in, out)
		} else {
			last = c.engine.sealer.closeNotify(out)
		}
		if last.moved == nil {
			filled := c.engine.queue.filled.Load()
			queued := c.engine.queue.take()
			c.engine.unlock()
			c.out.closeNotifySent = true
			if last.err != nil {
				c.out.closeNotifyErr = permanent(last.err)
				return nil, c.out.closeNotifyErr
			}
			if last.produced == 0 && !filled { // after a fatal alert, tickets are of no use to the peer
				return nil, nil
			}
			return append(queued, out[:last.produced]...), nil
		}
		c.engine.unlock()
		if !waiting {
			_ = c.SetWriteDeadline(time.Now().Add(closeNotifyTimeout))
		}
		if err := c.finishMessage(last.moved); err != nil {
			c.out.err = permanent(err)
			return nil, err
		}
	}
}
