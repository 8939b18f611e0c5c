package ossl

import (
	"context"
	"sync"
	"time"
)

// A cacheContext is the context for one call of a session cache. It is like context.WithTimeout,
// except that the timer is made only when Done is called. A cache in memory never calls it. A new
// timer that is due before all others wakes the thread that waits for the network, in the midst of
// a handshake.
type cacheContext struct {
	parent   context.Context
	deadline time.Time

	mu     sync.Mutex
	real   context.Context // nil until it is needed
	cancel context.CancelFunc
}

// newCacheContext returns a context for one call. The caller must call end after it.
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

// need makes the real context. mu is locked.
func (c *cacheContext) need() {
	if c.real == nil {
		c.real, c.cancel = context.WithDeadline(c.parent, c.deadline)
	}
}

func (c *cacheContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parent.Err() != nil || !time.Now().Before(c.deadline) {
		c.need() // later calls must return the same
	}
	if c.real == nil {
		return nil
	}
	return c.real.Err()
}

// Value returns the value of the real context, if there is one, or else of the parent. Package
// context calls it to find the real context, so that a context that is derived from this one needs
// no goroutine.
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

// String keeps package fmt from reading the fields, which it would do without the lock.
func (c *cacheContext) String() string { return "ossl.cacheContext" }
