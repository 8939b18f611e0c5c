package terminator

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A clientWork counts the requests of a client that are under way.
type clientWork struct {
	under     atomic.Int32 // requests that have reached the handler and aren't answered, and relays
	idleSince atomic.Int64 // in nanoseconds since 1970: the last answer, or the connection's begin
}

// begin notes a request, or a relay.
func (w *clientWork) begin() { w.under.Add(1) }

// end notes that a request, or a relay, is over.
func (w *clientWork) end() {
	w.idleSince.Store(time.Now().UnixNano())
	w.under.Add(-1)
}

// Bounds of the clients that are closed since the server is full.
const (
	idleAtLeast = 500 * time.Millisecond // a handshake and a request's header have this time at least
	idleAtOnce  = 32                     // as in nginx, an eighth of the idle ones at most
)

// idlers are the clients with places.
type idlers struct {
	mu      sync.Mutex
	clients map[*client]struct{} // guarded by mu
}

func (i *idlers) add(c *client) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.clients[c] = struct{}{}
}

func (i *idlers) remove(c *client) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.clients, c)
}

// longest returns the clients that have been idle longest: without a request under way, between two of
// them or before the first one, in its header or in the handshake. They are removed.
func (i *idlers) longest(now time.Time) []*client {
	type idler struct {
		c     *client
		since int64
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var idle []idler
	for c := range i.clients {
		since := c.work.idleSince.Load()
		if c.work.under.Load() == 0 && now.UnixNano()-since >= int64(idleAtLeast) {
			idle = append(idle, idler{c, since})
		}
	}
	slices.SortFunc(idle, func(a, b idler) int { return cmp.Compare(a.since, b.since) })
	var chosen []*client
	for _, one := range idle[:min(len(idle), max(1, min(idleAtOnce, len(idle)/8)))] {
		delete(i.clients, one.c)
		chosen = append(chosen, one.c)
	}
	return chosen
}

// leave stops reading from the client, so that the connection is closed as if the client had closed
// it.
func (c *client) leave() {
	if half, ok := c.conn.(interface{ CloseRead() error }); ok {
		_ = half.CloseRead() // an error means that it is closed
	} else {
		_ = c.conn.Close()
	}
}
