package ossl

import (
	"context"
	"sync"
	"time"
)

// A cacheContext is the context of a call of a session cache: context.WithTimeout, but for the timer, which is made when somebody
// asks for Done. A cache in memory never does, and a new timer that is due before all others wakes the thread that waits for the
// network, in the midst of a handshake.
type cacheContext struct {
	parent   context.Context
	deadline time.Time

	mu     sync.Mutex
	real   context.Context // nil until it is needed
	cancel context.CancelFunc
}

// newCacheContext returns a context for one call; end is to be called after it.
func newCacheContext(parent context.Context) *cacheContext {
	return &cacheContext{parent: parent, deadline: time.Now().Add(cacheTimeout)}
}

var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// end cancels the context.
func (c *cacheContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	} else {
		c.real = ended
	}
}

func (c *cacheContext) Deadline() (time.Time, bool) {
	if d, ok := c.parent.Deadline(); ok && d.Before(c.deadline) {
		return d, true
	}
	return c.deadline, true
}

func (c *cacheContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.need()
	return c.real.Done()
}

// need makes the real context. mu is held.
func (c *cacheContext) need() {
	if c.real == nil {
		c.real, c.cancel = context.WithDeadline(c.parent, c.deadline)
	}
}

func (c *cacheContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parent.Err() != nil || !time.Now().Before(c.deadline) {
		c.need() // what is said now must stand
	}
	if c.real == nil {
		return nil
	}
	return c.real.Err()
}

// Value is the parent's. Package context finds the real context by it, if there is one, and contexts made of this one need no
// goroutine then.
func (c *cacheContext) Value(key any) any {
	c.mu.Lock()
	real := c.real
	c.mu.Unlock()
	if real != nil {
		if v := real.Value(key); v != nil || real != ended {
			return v
		}
	}
	return c.parent.Value(key)
}

// String keeps package fmt from reading the fields, which takes no lock.
func (c *cacheContext) String() string { return "ossl.cacheContext" }
