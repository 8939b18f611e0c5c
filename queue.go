package ossl

import "sync/atomic"

// outQueue holds sealed records that must be sent before any record that is sealed later: a server's tickets, until the server
// sends something else, and the records that Reads have sealed (answers to key updates, alerts), until they can be sent.
type outQueue struct {
	data     []byte // guarded by Conn.mu
	answered bool   // guarded by Conn.mu; an answer to a KeyUpdate waits
	// filled is set if there is more to send than tickets, in data or in the kernelSide's messages. Code that reads it without
	// holding mu may miss a record that is being pushed; the pusher flushes afterwards.
	filled atomic.Bool
}

const (
	// maxQueue bounds the queue: a peer that asks for more than 1000 key updates, and does not read, is not served further.
	maxQueue = 64 << 10
	// maxHeld bounds the tickets in it, which contain the client's certificates.
	maxHeld = maxQueue / 2
)

// hold appends tickets, which by themselves are no reason to send, and reports whether there was room. Conn.mu is held.
func (q *outQueue) hold(tickets []byte) bool {
	if len(q.data)+len(tickets) > maxHeld {
		return false
	}
	q.data = append(q.data, tickets...)
	return true
}

// push appends b, and reports whether there was room. Conn.mu is held.
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

// take empties the queue. Conn.mu is held.
func (q *outQueue) take() []byte {
	if q.data == nil {
		return nil
	}
	data := q.data
	q.data, q.answered = nil, false
	q.filled.Store(false)
	return data
}

// flushQueue sends the queue, unless a Write is under way, which then does it at its end: a Read never waits for a blocked Write.
// Neither forgets anything: each looks at the queue again after giving writeMu back.
// Close waits for it, though not for long.
func (c *Conn) flushQueue() {
	if c.queue.filled.Load() {
		c.flushFilled()
	}
}

func (c *Conn) flushFilled() {
	// First said, then looked: either Close sees this, and bounds it, or this sees Close, which sends what there is.
	c.flushing.Add(1)
	defer c.flushing.Add(-1)
	if c.activeCall.Load()&1 != 0 {
		return
	}
	for c.queue.filled.Load() && c.writeMu.TryLock() {
		c.sendQueue()
	}
}

// sendQueue sends what is in the queue, and unlocks writeMu.
func (c *Conn) sendQueue() {
	defer c.writeMu.Unlock()
	c.engine.mu.Lock()
	queued := c.queue.take()
	var messages []kernelMessage
	if c.kernel != nil {
		messages = c.kernel.takeMessages(&c.queue)
	}
	c.engine.unlock()
	if c.writeErr != nil || c.closeNotifySent {
		return // nothing may follow an error or close_notify
	}
	var err error
	if len(queued) > 0 {
		err = c.send(queued)
	} else {
		err = c.sendMessages(messages)
	}
	if err != nil {
		c.writeErr = permanent(err)
	}
}
