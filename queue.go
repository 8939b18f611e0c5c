package ossl

import "sync/atomic"

// outQueue holds sealed records that must be sent before any record that is sealed later: a
// server's tickets, until the server sends something else; the last flight of a client's handshake,
// if a Write or HandshakeForWrite has run it; and the records that Reads have sealed (answers to key updates, alerts),
// until they can be sent.
type outQueue struct {
	data     []byte // guarded by the engine
	answered bool   // guarded by the engine; an answer to a KeyUpdate waits
	// filled is set if there is more to send than tickets, in data or in the kernelSender's
	// messages. Code that reads it without locking the engine may miss a record that is being
	// pushed; the pusher flushes afterwards.
	filled atomic.Bool
}

const (
	// maxQueue bounds the queue. It is full after a peer has asked for more than 1000 key updates
	// without reading the answers; then the connection fails.
	maxQueue = 64 << 10
	// maxHeld bounds the tickets in it, which contain the client's certificates.
	maxHeld = maxQueue / 2
)

// hold appends tickets, which by themselves are no reason to send, and reports whether there was
// room. The engine is locked.
func (q *outQueue) hold(tickets []byte) bool {
	if len(q.data)+len(tickets) > maxHeld {
		return false
	}
	q.data = append(q.data, tickets...)
	return true
}

// push appends b, and reports whether there was room. The engine is locked.
func (q *outQueue) push(b []byte) bool {
	if len(q.data)+len(b) > maxQueue {
		return false
	}
	if len(b) == 0 {
		return true
	}
	q.data = append(q.data, b...)
	q.filled.Store(true)
	return true
}

// take empties the queue. The engine is locked.
func (q *outQueue) take() []byte {
	if q.data == nil {
		return nil
	}
	data := q.data
	q.data, q.answered = nil, false
	q.filled.Store(false)
	return data
}

// An occasion is the reason why the queue is emptied.
type occasion int

const (
	byCall  occasion = iota // a Read or a Write sends it, and heeds the write deadline
	unasked                 // no call waits for it, so an old deadline must not end the connection
	discard                 // nothing may be sent any more
)

// flushQueue sends the queue, unless a Write is under way, which then does so at its end: a Read
// never waits for a blocked Write. Neither loses a record: each looks at the queue again after it
// has unlocked the writer. Close waits for flushQueue, though not for long.
func (c *Conn) flushQueue(as occasion) {
	if c.engine.queue.filled.Load() {
		c.flushFilled(as)
	}
}

func (c *Conn) flushFilled(as occasion) {
	defer c.calls.endFlush()
	if !c.calls.beginFlush() {
		return
	}
	for c.engine.queue.filled.Load() && c.out.mu.TryLock() {
		c.sendQueue(as)
	}
}

// sendQueue sends the queue and unlocks the writer.
func (c *Conn) sendQueue(as occasion) {
	defer c.out.mu.Unlock()
	if c.out.err != nil || c.out.closeNotifySent { // nothing may follow
		as = discard
	}
	if err := c.out.sender.flush(c, as); err != nil {
		c.out.err = permanent(err)
	}
}
