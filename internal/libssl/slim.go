package libssl

import (
	"os"
	"sync"
	"sync/atomic"
)

// The slim library context makes handshakes cheaper (slim.c), but making it, and a first SSL_CTX in
// it, takes longer than it saves in a few handshakes. Programs that connect once are many. So a
// client's and a server's Context that are made before a handshake has finished are early: in the
// default library context, and replaced at the start of their next handshake.

// maxEarly is the number of contexts that may be early.
const maxEarly = 2

// settled is whether no more contexts are early: a handshake of this process has finished, or more than
// maxEarly contexts were made. made is their number until then.
var (
	settled atomic.Bool
	made    atomic.Int64
)

// isEarly reports whether a new context is early. If not, it may live in the slim library context.
func isEarly(cfg *ContextConfig) bool {
	switch {
	case cfg.FIPS:
		return false
	case settled.Load():
	case cfg.AsHost: // it is in use for a moment
		return false
	case made.Add(1) <= maxEarly:
		return true
	default:
		settled.Store(true)
	}
	useSlim()
	return false
}

// slimAllowed is whether the environment allowed the slim library context when the library was loaded.
var slimAllowed atomic.Bool

// useSlim reports whether new contexts live in the slim library context, which it makes.
var useSlim = sync.OnceValue(func() bool { return slimAllowed.Load() && c_ossl_slim_setup() == 1 })

// UseSlim makes new contexts live in the slim library context, as they do after the process's first
// handshake. It reports whether they can. The library must be loaded. It is for tests.
func UseSlim() bool {
	settled.Store(true)
	return useSlim()
}

func allowSlim() { slimAllowed.Store(os.Getenv(EnvSlim) != "off") }

// settle replaces an early context's SSL_CTX by one in the slim library context if that may be used now.
// If another goroutine is about to do so, or memory is short, the caller uses the old one.
func (c *Context) settle() {
	if !c.early.Load() || !settled.Load() || !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	if c.config == nil {
		return
	}
	if useSlim() {
		old := c.ssl.Load()
		ssl, err := newSSL(c.config, old)
		if e, ok := err.(*Error); ok && e.NoMemory() {
			return // the next handshake tries again
		}
		if err == nil { // else the old one is as good, and only slower
			c.ssl.Store(ssl)
			old.close()
		}
	}
	c.config = nil
	c.early.Store(false)
}
