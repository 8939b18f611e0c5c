package ossl

import (
	"math"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
)

// A handshake message after the handshake (a large ticket, or a peer's malice) may come in several records. Having seen the
// first, libssl writes nothing before it has seen the last. So a Write may have to wait for input, which crypto/tls's never does.
// It must end as if it waited for the network to take its output: by the write deadline, by Close, by the peer's end.
//
// If a Read is under way, that reads, and the Write waits for it to have fed libssl or to have ended (awaitRead). Otherwise the
// Write reads for itself (readToWrite): it holds readMu, and the read deadline of the connection beneath is the write deadline,
// for so long. So the user's read deadline doesn't end it; the user's is kept in turns, and set again afterwards. A Read that
// comes meanwhile takes over: it has the Write's read end by a deadline in the past, gets readMu, and reads under its own
// deadline. When it has ended, and the message is still not whole, the Write reads again. Neither leaves a goroutine behind, and
// a timeout of one is not the other's error.
//
// All of this needs Conn to know both deadlines while libssl has the records: one that is set on the connection beneath is lost
// when a Write reads.

// turns says who reads from the connection beneath as long as libssl has the records.
type turns struct {
	mu            sync.Mutex // held for an instant, and while deadlines are set; no other lock is taken
	readDeadline  moment     // the user's
	writeDeadline moment
	reads         int32 // Reads that have readMu or wait for it
	byWrite       bool  // a Write reads for itself
	yields        bool  // it is being ended, so that a Read gets its turn
	awaited       bool  // a Write waits for the Reads
}

// A moment is a time by the monotonic clock, as deadlines of package net are: nanoseconds since clockStart, 0 for none.
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

// beginRead announces a Read of a connection whose records libssl has, before it waits for readMu.
func (c *Conn) beginRead() {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	c.turns.reads++
	if c.turns.byWrite && !c.turns.yields {
		c.turns.yields = true
		_ = c.conn.SetReadDeadline(longAgo)
	}
}

// endRead ends what beginRead began, when readMu has been given back.
func (c *Conn) endRead() {
	c.turns.mu.Lock()
	c.turns.reads--
	awaited := c.turns.awaited
	c.turns.mu.Unlock()
	if awaited {
		c.wakeWrite()
	}
}

// setDeadlines remembers a deadline for Reads, Writes or both, and sets it.
func (c *Conn) setDeadlines(t time.Time, read, write bool, set func(time.Time) error) error {
	if c.takenOver.Load() { // no Write reads
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
		return nil // it is set when the Write has read
	case !c.turns.yields:
		_ = c.conn.SetReadDeadline(t)
	}
	return c.conn.SetWriteDeadline(t)
}

// deadlinePassed reports whether one of the deadlines has, as long as libssl has the records.
func (c *Conn) deadlinePassed() bool {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	return c.turns.readDeadline.passed() || c.turns.writeDeadline.passed()
}

// wakeAwaiting has a Write that waits for Reads look at its deadline again.
func (c *Conn) wakeAwaiting() {
	c.turns.mu.Lock()
	awaited := c.turns.awaited
	c.turns.mu.Unlock()
	if awaited {
		c.wakeWrite()
	}
}

func (c *Conn) wakeWrite() {
	c.mu.Lock()
	defer c.unlock()
	c.moved()
}

// moved tells a Write that waits that libssl has been fed, or is to be by itself. mu is held.
func (c *Conn) moved() {
	if c.readMoved != nil {
		close(c.readMoved)
		c.readMoved = nil
	}
}

// awaitMove returns a channel that the next call of moved closes. mu is held, since the crossing that says what to wait for.
func (c *Conn) awaitMove() <-chan struct{} {
	if c.readMoved == nil {
		c.readMoved = make(chan struct{})
	}
	return c.readMoved
}

// finishMessage waits until libssl has been fed: by a Read, which closes moved, or by itself. writeMu is held.
func (c *Conn) finishMessage(moved <-chan struct{}) error {
	wait, deadline, err := c.readUnlessRead()
	if !wait {
		return err
	}
	return c.awaitRead(moved, deadline)
}

// readUnlessRead reads and feeds libssl, unless it is to be waited for a Read. writeMu is held.
func (c *Conn) readUnlessRead() (wait bool, deadline moment, err error) {
	// Who has readMu is a Read that has announced itself, or has it for an instant, or the connection has been taken over
	// meanwhile: then it is for the caller to try again.
	alone := c.readMu.TryLock()
	if alone {
		defer c.unlockRead()
	}
	if c.takenOver.Load() {
		return false, 0, nil
	}
	if wait, deadline = c.beginTurn(alone); wait || !alone {
		return wait, deadline, nil
	}
	return false, 0, c.readToWrite()
}

// beginTurn makes it a Write's turn to read, if it may, unless there are Reads to wait for.
func (c *Conn) beginTurn(may bool) (wait bool, deadline moment) {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	c.turns.awaited = c.turns.reads > 0
	if may && !c.turns.awaited {
		c.turns.byWrite, c.turns.yields = true, false
		_ = c.conn.SetReadDeadline(c.turns.writeDeadline.time()) // its error is the read's too
	}
	return c.turns.awaited, c.turns.writeDeadline
}

// awaitRead waits until moved is closed, until Close or the write deadline.
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
	case <-c.closed():
		return net.ErrClosed
	case <-timeout:
		return c.writeTimeout()
	}
}

// writeTimeout is the error of a Write whose deadline has passed, as package net has it.
func (c *Conn) writeTimeout() error {
	e := &net.OpError{Op: "write", Source: c.conn.LocalAddr(), Addr: c.conn.RemoteAddr(), Err: os.ErrDeadlineExceeded}
	if e.Source != nil {
		e.Net = e.Source.Network()
	}
	return e
}

// readToWrite reads under the write deadline, which has been set, and feeds libssl. writeMu and readMu are held.
func (c *Conn) readToWrite() error {
	if err := c.receiveToWrite(); err != nil {
		return err
	}
	if len(c.in.data) == 0 {
		return nil
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

// receiveToWrite reads once if there is no input. It returns neither input nor an error if a Read is to read.
func (c *Conn) receiveToWrite() error {
	defer c.endTurn()
	switch {
	case c.readErr != nil:
		return c.readErr
	case len(c.in.data) > 0:
		return nil
	}
	err := c.receive()
	if e, ok := err.(net.Error); !ok || !e.Timeout() {
		return err
	}
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	if c.turns.writeDeadline.passed() {
		return c.writeTimeout()
	}
	return nil // a Read comes, or the deadline was moved
}

// endTurn sets the read deadline again as the user has it.
func (c *Conn) endTurn() {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	c.turns.byWrite = false
	_ = c.conn.SetReadDeadline(c.turns.readDeadline.time())
}
