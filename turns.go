package ossl

import (
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/netio"
)

// A handshake message after the handshake (a large ticket, or one from a malicious peer) may come
// in several records. When libssl has read the first, it writes nothing until it has read the last.
// So a Write may need to wait for input, which crypto/tls's Write never does. That wait must end as
// a wait for the network would: by the write deadline, by Close, or by the peer's end.
//
// If a Read is under way, the Write waits until the Read has fed libssl or returns (awaitRead).
// Otherwise the Write reads for itself (readToWrite): while it has locked the reader, the read
// deadline of the underlying connection is the write deadline. So the user's read deadline doesn't
// end the Write; turns keeps it, and endTurn sets it again. A Read that is called in this time
// takes over: it interrupts the Write's read with a deadline in the past, locks the reader, and
// reads under its own deadline. If the message is still incomplete when the Read returns, the Write
// reads again. Neither leaves a goroutine behind, and a timeout of one is not the other's error.
//
// For this, Conn must know both deadlines while libssl has the records: a deadline that is set on
// the underlying connection is lost when a Write reads.

// turns keeps track of the Reads and Writes that read from the underlying connection while libssl
// has the records.
type turns struct {
	mu            sync.Mutex // held briefly, and while deadlines are set; the last lock that is taken
	readDeadline  moment     // the user's
	writeDeadline moment
	reads         int32 // the number of Reads that have the reader's lock or wait for it
	byWrite       bool  // a Write is reading for itself
	yields        bool  // that Write's read is being interrupted, for a Read
	awaited       bool  // a Write is waiting for the Reads

	over atomic.Bool // libssl no longer has the records
}

// end notes that libssl no longer has the records. From now on no Write reads, and deadlines are
// the underlying connection's.
func (t *turns) end() { t.over.Store(true) }

// A moment is a time by the monotonic clock, as package net's deadlines are: nanoseconds since
// clockStart, 0 for none.
type moment int64

var clockStart = time.Now() // of moments

var longAgo = clockStart.Add(1)

func momentOf(t time.Time) moment {
	if t.IsZero() {
		return 0
	}
	since := time.Since(clockStart)
	return moment(max(1, since+min(time.Until(t), math.MaxInt64-since)))
}

func (m moment) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return clockStart.Add(time.Duration(m))
}

func (m moment) passed() bool { return m != 0 && time.Since(clockStart) >= time.Duration(m) }

// beginRead announces a Read, before it waits for the reader's lock, as long as libssl has the
// records. It reports whether it did; if so, endRead must follow.
func (t *turns) beginRead(conn net.Conn) bool {
	if t.over.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads++
	if t.byWrite && !t.yields {
		t.yields = true
		_ = conn.SetReadDeadline(longAgo)
	}
	return true
}

// endRead undoes beginRead when the Read is over. The reader has been unlocked.
func (c *Conn) endRead() {
	c.turns.mu.Lock()
	c.turns.reads--
	awaited := c.turns.awaited
	c.turns.mu.Unlock()
	if awaited {
		c.wakeWrite()
	}
}

// setDeadlines records a deadline for Reads, Writes or both, and sets it.
func (c *Conn) setDeadlines(t time.Time, read, write bool, set func(time.Time) error) error {
	if c.turns.over.Load() {
		if c.calls.detached() { // somebody else uses the underlying connection
			return ErrDetached
		}
		return set(t)
	}
	if write {
		defer c.wakeAwaiting()
	}
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	if read {
		c.turns.readDeadline = momentOf(t)
	}
	if write {
		c.turns.writeDeadline = momentOf(t)
	}
	switch {
	case !c.turns.byWrite:
		return set(t)
	case !write:
		return nil // endTurn sets it
	case !c.turns.yields:
		_ = c.conn.SetReadDeadline(t)
	}
	return c.conn.SetWriteDeadline(t)
}

// deadlinePassed reports whether one of the deadlines has passed. They are known only while libssl
// has the records.
func (c *Conn) deadlinePassed() bool {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	return c.turns.readDeadline.passed() || c.turns.writeDeadline.passed()
}

// untilDeadline returns the time until the next deadline, as long as libssl has the records, or
// most if that is sooner.
func (c *Conn) untilDeadline(most time.Duration) time.Duration {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	for _, m := range []moment{c.turns.readDeadline, c.turns.writeDeadline} {
		if m != 0 {
			most = min(most, time.Until(m.time()))
		}
	}
	return max(most, time.Millisecond)
}

// wakeAwaiting makes a Write that waits for Reads check its deadline again.
func (c *Conn) wakeAwaiting() {
	c.turns.mu.Lock()
	awaited := c.turns.awaited
	c.turns.mu.Unlock()
	if awaited {
		c.wakeWrite()
	}
}

func (c *Conn) wakeWrite() {
	c.engine.mu.Lock()
	defer c.engine.unlock()
	if s, ok := c.engine.sealer.(*libsslSealer); ok {
		s.wake()
	}
}

// finishMessage waits until a Read has fed libssl, which closes moved, or else feeds libssl itself.
// The writer is locked.
func (c *Conn) finishMessage(moved <-chan struct{}) error {
	wait, deadline, err := c.readUnlessRead()
	if !wait {
		return err
	}
	return c.awaitRead(moved, deadline)
}

// readUnlessRead reads and feeds libssl, or reports that the caller must wait for a Read. The
// writer is locked.
func (c *Conn) readUnlessRead() (wait bool, deadline moment, err error) {
	// If the reader is locked, then by a Read that has called beginRead, or only briefly, or the
	// connection was taken over in the meantime. In the last two cases the caller tries again.
	alone := c.in.tryLock()
	if alone {
		defer c.in.unlock()
	}
	if c.turns.over.Load() {
		return false, 0, nil
	}
	if wait, deadline = c.beginTurn(alone); wait || !alone {
		return wait, deadline, nil
	}
	return false, 0, c.readToWrite()
}

// beginTurn begins a Write's turn to read, if may is true and there are no Reads to wait for.
func (c *Conn) beginTurn(may bool) (wait bool, deadline moment) {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	c.turns.awaited = c.turns.reads > 0
	if may && !c.turns.awaited {
		c.turns.byWrite, c.turns.yields = true, false
		_ = c.conn.SetReadDeadline(c.turns.writeDeadline.time()) // if this fails, so does the read
	}
	return c.turns.awaited, c.turns.writeDeadline
}

// awaitRead waits until moved is closed, Close is called, or the write deadline passes.
func (c *Conn) awaitRead(moved <-chan struct{}, deadline moment) error {
	var timeout <-chan time.Time
	if deadline != 0 {
		timer := time.NewTimer(time.Until(deadline.time()))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-moved:
		return nil
	case <-c.calls.closed():
		return net.ErrClosed
	case <-timeout:
		return c.writeTimeout()
	}
}

// writeTimeout returns the error that package net returns for a Write whose deadline has passed.
func (c *Conn) writeTimeout() error {
	e := &net.OpError{Op: "write", Source: c.conn.LocalAddr(), Addr: c.conn.RemoteAddr(), Err: os.ErrDeadlineExceeded}
	if e.Source != nil {
		e.Net = e.Source.Network()
	}
	return e
}

// readToWrite reads and feeds libssl. The write deadline has been set as the read deadline. The
// writer and the reader are locked.
func (c *Conn) readToWrite() error {
	if err := c.receiveToWrite(); err != nil {
		return err
	}
	if len(c.in.Data) == 0 {
		return nil
	}
	ssl, err := c.engine.lock()
	if err != nil {
		return err
	}
	defer c.engine.unlock()
	// The rest of the message and no more: data that follows it stays for Read.
	var facts libssl.Facts
	out := netio.Small.Get()
	defer out.Put()
	step := ssl.Handshake(c.in.Data, out.Mem, &facts)
	if o, ok := c.in.opener.(*libsslOpener); ok {
		o.edge.pass(c.in.Data[:step.Consumed])
	}
	c.in.Consume(step.Consumed)
	produced := out.Mem[:step.Produced]
	if step.Status == libssl.Fatal {
		var alert int
		alert, err = fatalError("write", ssl, nil, nil)
		produced, _ = blameless(produced, alert, err)
	}
	if len(produced) > 0 && !c.engine.queue.push(produced) {
		return errQueueFull
	}
	return err
}

// receiveToWrite reads once if there is no input. It returns nil, with no input, if a Read has
// taken over.
func (c *Conn) receiveToWrite() error {
	defer c.endTurn()
	switch {
	case c.in.err != nil:
		return c.in.err
	case len(c.in.Data) > 0:
		return nil
	}
	err := c.in.Fill(c.conn)
	if e, ok := err.(net.Error); !ok || !e.Timeout() {
		if err = c.received(err); err == io.EOF { // to Read only
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	if c.turns.writeDeadline.passed() {
		return c.writeTimeout()
	}
	return nil // a Read has taken over, or the deadline was moved
}

// endTurn sets the user's read deadline again.
func (c *Conn) endTurn() {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	c.turns.byWrite = false
	_ = c.conn.SetReadDeadline(c.turns.readDeadline.time())
}
