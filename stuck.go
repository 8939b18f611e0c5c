package ossl

import (
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
)

// A handshake message after the handshake (a large ticket, or a peer's malice) may come in several records. Having seen the
// first, libssl writes nothing before it has seen the last. So a Write may have to wait for input.

// finishMessage waits until the input has moved on: it reads if nobody else does. writeMu is held.
func (c *Conn) finishMessage() error {
	if !c.readMu.TryLock() {
		return c.awaitRead()
	}
	defer c.unlockRead()
	if c.takenOver.Load() { // by a Read that has come first
		return nil
	}
	if c.readErr != nil {
		return c.readErr
	}
	if len(c.in.data) == 0 {
		if err := c.in.fill(c.conn); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.unlock()
	if c.tls == nil {
		return net.ErrClosed
	}
	// The rest of the message and no more: data that follows it stays for Read.
	var facts libssl.Facts
	out := getBuffer(smallBuffers)
	defer out.put()
	step := c.tls.Handshake(c.in.data, out.mem, &facts)
	c.in.consume(step.Consumed)
	if step.Produced > 0 && !c.queue.push(out.mem[:step.Produced]) {
		return errQueueFull
	}
	if step.Status == libssl.Fatal {
		_, err := fatalError("write", c.tls, nil)
		return err
	}
	return nil
}

// awaitRead waits for the next crossing of the Read under way, until Close or the write deadline.
func (c *Conn) awaitRead() error {
	c.mu.Lock()
	if c.readMoved == nil {
		c.readMoved = make(chan struct{})
	}
	moved := c.readMoved
	c.unlock()
	var timeout <-chan time.Time
	if at := c.writeDeadline.Load(); at != 0 {
		timer := time.NewTimer(time.Until(time.Unix(0, at)))
		defer timer.Stop()
		timeout = timer.C
	}
	// The Read may have ended between the two locks; then nobody signals, and the next try finds readMu free.
	retry := time.NewTimer(time.Second)
	defer retry.Stop()
	select {
	case <-moved:
		return nil
	case <-retry.C:
		return nil
	case <-c.closed():
		return net.ErrClosed
	case <-timeout:
		return os.ErrDeadlineExceeded
	}
}

// moved tells waiting Writes that a Read has taken input. mu is held.
func (c *Conn) moved() {
	if c.readMoved != nil {
		close(c.readMoved)
		c.readMoved = nil
	}
}

// noteDeadline remembers a deadline for what waits outside of the network.
func noteDeadline(deadline *atomic.Int64, t time.Time) {
	if t.IsZero() {
		deadline.Store(0)
		return
	}
	deadline.Store(t.UnixNano())
}
