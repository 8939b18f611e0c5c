package ossl

import (
	"crypto/tls"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/ossl-go/ossl/internal/stdtls"
)

// A contextCache holds the Contexts for the configurations that the drop-in functions were given, or
// that a Context's GetConfigForClient has returned. Programs use the same configuration each time, a
// copy of it, perhaps with another ServerName, or one made for the connection. The first two have
// the same fingerprint, and are compiled once as long as they are in use. A configuration of the
// third kind is compiled each time: libssl's memory for its Context is freed when it has left the
// cache and its connections are closed. The garbage collector would be late, since it doesn't see
// that memory.
type contextCache struct {
	mu       sync.Mutex
	now      func() time.Time
	recent   recentMap[sharedKey, *sharedContext] // guarded by mu
	observer *observer
}

type sharedKey struct {
	config string // its fingerprint
	opts   *options
	fips   bool // OSSL_FIPS or the host requires FIPS mode
}

// A sharedContext is a Context without a ServerName, and the number of its users: the cache, the
// compiledConfigs, and the connections that have not made their SSL yet. An SSL itself keeps the
// libssl objects that it needs. If a user is dropped without leave, the garbage collector frees the
// Context.
type sharedContext struct {
	users atomic.Int64

	mu   sync.Mutex
	used *stdtls.Snapshot // keeps the key valid
	ctx  *Context         // guarded by mu until compiling succeeded, then constant
}

// contextCounts count the shared Contexts of the process.
var contextCounts struct{ compiled, freed atomic.Uint64 }

// enter adds a user, unless there is none left.
func (e *sharedContext) enter() bool {
	for {
		n := e.users.Load()
		if n == 0 {
			return false
		}
		if e.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave removes a user. The last one frees libssl's memory.
func (e *sharedContext) leave() {
	if e.users.Add(-1) == 0 && e.ctx != nil {
		contextCounts.freed.Add(1)
		e.ctx.ssl.Close()
	}
}

func newContextCache(o *observer, most int64) *contextCache {
	c := &contextCache{now: time.Now, observer: o}
	c.recent.max, c.recent.newcomers, c.recent.idle = most, most/4, contextIdle
	c.recent.drop = (*sharedContext).leave
	c.recent.evicted = func() { o.configurations.evictions.Add(1) }
	cache := weak.Make(c) // as for credentials
	c.recent.expired = func() {
		if c := cache.Value(); c != nil {
			c.mu.Lock()
			defer c.recent.unlock(&c.mu)
			c.recent.expire(c.now())
		}
	}
	return c
}

// context returns the Context for config, without its ServerName, with these options and this
// parent. The caller must call leave, after it has made its SSL.
func (c *contextCache) context(config *tls.Config, o *options, parent *Context) (*sharedContext, error) {
	required, err := fipsRequired()
	if err != nil {
		return nil, err
	}
	e := c.entry(config, o, required != "")
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == nil { // a failure is not remembered
		c.observer.configurations.misses.Add(1)
		ctx, err := newContext(e.used.Config, o, parent)
		if err != nil {
			e.leave()
			return nil, err
		}
		e.ctx = ctx
		contextCounts.compiled.Add(1)
	}
	return e, nil
}

// entry returns the entry for a configuration, with its caller as a user.
func (c *contextCache) entry(config *tls.Config, o *options, fips bool) *sharedContext {
	if !stdtls.FingerprintsAreComplete() {
		return newSharedContext(stdtls.NewSnapshot(config))
	}
	now := c.now()
	key := sharedKey{string(stdtls.Fingerprint(config)), o, fips}
	c.mu.Lock()
	e, ok := c.recent.get(key, now)
	if ok {
		e.enter()
	}
	c.recent.unlock(&c.mu)
	if ok {
		return e
	}

	used := stdtls.NewSnapshot(config)
	key.config = used.Fingerprint
	c.mu.Lock()
	defer c.recent.unlock(&c.mu)
	if e, ok = c.recent.get(key, now); !ok { // else another connection was quicker
		e = newSharedContext(used)
		c.recent.put(key, e, configSize(used.Config), now)
	}
	e.enter()
	return e
}

// newSharedContext returns an entry with one user.
func newSharedContext(used *stdtls.Snapshot) *sharedContext {
	e := &sharedContext{used: used}
	e.users.Store(1)
	return e
}

// unpin lets the connection's Context be freed.
func (c *Conn) unpin() {
	if c.pinned != nil {
		c.pinned.leave()
		c.pinned = nil
	}
}
