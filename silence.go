package ossl

import (
	"sync"
	"time"
)

// A TLS 1.3 server sends its tickets with its first record after the handshake. A client may wait
// for a ticket before it sends anything, as gnutls-cli --waitresumption does. If the server waits
// for the client too, neither ever sends. So if a client sends nothing for a while after its
// handshake, the server sends its tickets alone: that client is not uploading.
//
// A client that expects to write, HandshakeForWrite, sends its last flight with its first data, and
// likewise alone if there is none for a while: its server's handshake isn't done before.

// silence is the time for which the client must have sent nothing.
const silence = time.Second

// silent holds the connections whose clients have sent nothing yet, each with the time when its
// handshake finished.
var silent = struct {
	mu    sync.Mutex
	since map[*Conn]time.Time // guarded by mu
	armed bool                // guarded by mu; sweepSilent will be called
}{since: make(map[*Conn]time.Time)}

// watchSilence makes sure that the tickets, or the client's last flight, in the queue are sent if
// the client sends nothing. The reader is locked, and no input has arrived at a server after the
// handshake.
func (c *Conn) watchSilence() {
	if !c.in.HasSocket() { // for sendHeld
		return
	}
	c.in.watched.Store(true)
	silent.mu.Lock()
	defer silent.mu.Unlock()
	silent.since[c] = time.Now()
	if !silent.armed {
		silent.armed = true
		time.AfterFunc(silence, sweepSilent)
	}
}

// heard undoes watchSilence: a server's client has sent something, or the connection is being closed.
func (c *Conn) heard() {
	if !c.in.watched.Load() || !c.in.watched.CompareAndSwap(true, false) {
		return
	}
	silent.mu.Lock()
	defer silent.mu.Unlock()
	delete(silent.since, c)
}

// sweepSilent sends what waits in the connections whose clients have been silent for long enough.
func sweepSilent() {
	silent.mu.Lock()
	defer silent.mu.Unlock()
	for c, since := range silent.since {
		if time.Since(since) >= silence {
			delete(silent.since, c)
			go c.sendHeld() // which may block in the network
		}
	}
	silent.armed = len(silent.since) > 0
	if silent.armed {
		time.AfterFunc(silence/4, sweepSilent)
	}
}

// sendHeld sends the queue of a connection over a socket, unless input has arrived that a server has
// not read yet.
func (c *Conn) sendHeld() {
	if !c.isClient && !c.in.Quiet() {
		return
	}
	c.engine.mu.Lock()
	if len(c.engine.queue.data) > 0 {
		c.engine.queue.filled.Store(true)
	}
	c.engine.unlock()
	c.flushQueue(unasked)
}
