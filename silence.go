package ossl

import (
	"sync"
	"time"
)

// A TLS 1.3 server's tickets wait for the first that the server sends. A client that waits for a ticket before it sends anything
// itself would wait for ever: gnutls-cli does with --waitresumption. So the tickets of a client that has sent nothing for a while
// after its handshake leave by themselves: it doesn't upload, it waits.

// silence is how long such a client is waited for.
const silence = time.Second

// silent are the connections that are watched, each since the end of its handshake.
var silent = struct {
	mu    sync.Mutex
	since map[*Conn]time.Time // guarded by mu
	armed bool                // guarded by mu; sweepSilent will be called
}{since: make(map[*Conn]time.Time)}

// watchSilence has the tickets that wait in the queue leave if the client stays silent. readMu is held, and no input has arrived
// behind the handshake.
func (c *Conn) watchSilence() {
	if c.in.raw == nil { // nobody could tell what has arrived
		return
	}
	c.watched = true
	silent.mu.Lock()
	defer silent.mu.Unlock()
	silent.since[c] = time.Now()
	if !silent.armed {
		silent.armed = true
		time.AfterFunc(silence, sweepSilent)
	}
}

// heard ends what watchSilence began.
func (c *Conn) heard() {
	silent.mu.Lock()
	defer silent.mu.Unlock()
	delete(silent.since, c)
}

// sweepSilent sends the tickets of the connections whose clients have been silent for long enough.
func sweepSilent() {
	silent.mu.Lock()
	defer silent.mu.Unlock()
	for c, since := range silent.since {
		if time.Since(since) >= silence {
			delete(silent.since, c)
			go c.sendTickets() // the network may not take them
		}
	}
	silent.armed = len(silent.since) > 0
	if silent.armed {
		time.AfterFunc(silence/4, sweepSilent)
	}
}

// sendTickets sends the tickets that wait, unless something has arrived that nobody has read yet.
func (c *Conn) sendTickets() {
	quiet := false
	if err := c.in.raw.Control(func(fd uintptr) { quiet = nothingArrived(fd) }); err != nil || !quiet {
		return
	}
	c.mu.Lock()
	c.queue.filled.Store(c.queue.filled.Load() || len(c.queue.data) > 0)
	c.unlock()
	c.flushQueue()
}
