//go:build cgo

package libssl

// #include "slim.h"
import "C"

import (
	"os"
	"sync"
	"sync/atomic"
)

// The slim library context makes handshakes cheaper (slim.c), but making it, and a first SSL_CTX in
// it, takes longer than it saves in a few handshakes. Programs that connect once are many. So until a
// handshake has finished, contexts are in the default library context, and each is replaced at the
// start of its next handshake.

// shaken is whether a handshake of this process has finished.
var shaken atomic.Bool

// slimAllowed is whether the environment allowed the slim library context when the library was loaded.
var slimAllowed atomic.Bool

// useSlim reports whether new contexts live in the slim library context, which it makes.
var useSlim = sync.OnceValue(func() bool { return slimAllowed.Load() && C.ossl_slim_setup() == 1 })

// UseSlim does what the process's first handshake does when it has finished, and reports whether new
// contexts live in the slim library context. The library must be loaded. It is for tests.
func UseSlim() bool {
	shaken.Store(true)
	return useSlim()
}

func allowSlim() { slimAllowed.Store(os.Getenv(EnvSlim) != "off") }

// settle replaces the SSL_CTX by one in the slim library context if a handshake has finished since it
// was made. If another goroutine is about to do so, or memory is short, the caller uses the old one.
func (c *Context) settle() {
	if !c.early.Load() || !shaken.Load() || !c.mu.TryLock() {
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
