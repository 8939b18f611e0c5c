package ossl

import (
	"crypto/tls"
	"sync"
	"time"

	"github.com/ossl-go/ossl/internal/stdtls"
)

// chosenContexts holds the Contexts for the configurations that a Context's GetConfigForClient has
// returned. It may return the same configuration each time, a copy of it, or one made for the
// connection. The first two have the same fingerprint, and are compiled once as long as they are in
// use. A configuration of the third kind is compiled each time: libssl's memory for its Context is
// freed when it has left the list and its connections are closed. The garbage collector would be
// late, since it doesn't see that memory.
type chosenContexts struct {
	mu     sync.Mutex
	now    func() time.Time
	recent recentMap[chosenKey, *chosenContext] // guarded by mu
	idle   []*chosenContext                     // guarded by mu; no longer used
}

type chosenKey struct {
	config string // its fingerprint
	fips   bool   // OSSL_FIPS or the host requires FIPS mode
}

// A chosenContext is a Context and the number of its users: the list, and the handshakes that have
// not made their SSL yet. An SSL itself keeps the libssl objects that it needs.
type chosenContext struct {
	users int // guarded by the list's mu

	mu   sync.Mutex
	used *stdtls.Snapshot // keeps the key valid
	ctx  *Context         // guarded by mu while there are users; set once compiling succeeded
}

func newChosenContexts() *chosenContexts {
	c := &chosenContexts{now: time.Now}
	c.recent.max, c.recent.idle = maxContexts, contextIdle
	c.recent.drop = c.leave
	return c
}

// leave removes one user of a Context. mu is locked.
func (c *chosenContexts) leave(e *chosenContext) {
	if e.users--; e.users == 0 {
		c.idle = append(c.idle, e)
	}
}

// unlock unlocks mu, and frees libssl's memory of the Contexts that are no longer used.
func (c *chosenContexts) unlock() {
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	for _, e := range idle {
		if e.ctx != nil {
			e.ctx.ssl.Close()
		}
	}
}

// use returns the entry for a configuration. The caller must call done.
func (c *chosenContexts) use(config *tls.Config, fips bool) *chosenContext {
	if !stdtls.FingerprintsAreComplete() {
		return &chosenContext{users: 1, used: stdtls.NewSnapshot(config)}
	}
	now := c.now()
	key := chosenKey{string(stdtls.Fingerprint(config)), fips}
	c.mu.Lock()
	if e, ok := c.recent.get(key, now); ok {
		e.users++
		c.unlock()
		return e
	}
	c.unlock()

	used := stdtls.NewSnapshot(config)
	key.config = used.Fingerprint
	c.mu.Lock()
	defer c.unlock()
	e, ok := c.recent.get(key, now) // another handshake may have been quicker
	if !ok {
		e = &chosenContext{users: 1, used: used}
		c.recent.put(key, e, now)
	}
	e.users++
	return e
}

func (c *chosenContexts) done(e *chosenContext) {
	c.mu.Lock()
	defer c.unlock()
	c.leave(e)
}

// forConfig returns the Context for a configuration that GetConfigForClient returned, with the
// options of c. The caller must make its SSL from it before it calls done.
func (c *Context) forConfig(config *tls.Config) (ctx *Context, done func(), err error) {
	required, err := fipsRequired()
	if err != nil {
		return nil, nil, err
	}
	e := c.chosen.use(config, required != "")
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == nil { // a failure is not remembered
		if e.ctx, err = newContext(e.used.Config, c.opts, c); err != nil {
			e.ctx = nil
			c.chosen.done(e)
			return nil, nil, err
		}
	}
	return e.ctx, func() { c.chosen.done(e) }, nil
}
