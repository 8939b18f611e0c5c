package libssl

import (
	"os"
	"runtime"
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

// slim is whether new contexts live in the slim library context, once that is decided.
var slim struct {
	sync.Mutex
	decided atomic.Bool
	used    bool
}

// useSlim reports whether new contexts live in the slim library context, which it makes. If memory is short,
// they don't until a later call can make it.
func useSlim() bool {
	if slim.decided.Load() {
		return slim.used
	}
	slim.Lock()
	defer slim.Unlock()
	if !slim.decided.Load() {
		result := c_int(0)
		if slimAllowed.Load() {
			result = c_ossl_slim_setup(c_int(processors()))
		}
		slim.used = result == 1
		slim.decided.Store(result >= 0)
	}
	return slim.used
}

// UseSlim makes new contexts live in the slim library context, as they do after the process's first
// handshake. It reports whether they can. The library must be loaded. It is for tests.
func UseSlim() bool {
	settled.Store(true)
	return useSlim()
}

// processors returns the number of processors that the process uses at the same time: a container may have
// a share of many.
func processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// Shards returns the number of shards that a Context has if this many are wanted, or, if wanted is 0, by this
// process's processors. The library must be loaded.
func Shards(wanted int) int {
	const each = 4 // processors: on OpenSSL 3.0, one lock admits the handshakes of 20 to 40
	if wanted == 0 {
		if wanted = min((processors()+each-1)/each, MaxShards); wanted > 1 && c_ossl_shard_known() == 0 {
			return 1
		}
	}
	if wanted > 1 && (!slimAllowed.Load() || c_ossl_slim_allowed() == 0) {
		return 1
	}
	return wanted
}

// PinShard makes all connections start in one shard, or if it is -1 in that of their processor. It is for tests.
func PinShard(shard int) { c_ossl_shard_pin(c_int(shard)) }

// Parts returns the number of parts that Contexts have for other shards than their first. It is for tests.
func Parts() int { return int(c_ossl_ctx_parts()) }

func allowSlim() { slimAllowed.Store(os.Getenv(EnvSlim) != "off") }

// settle replaces an early context's SSL_CTX by one in the slim library context if that may be used now.
// If another goroutine is about to do so, or memory is short, the caller uses the old one.
func (c *Context) settle() {
	if !c.early.Load() || !settled.Load() || !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	if !c.early.Load() {
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
	if c.config.Shards <= 1 {
		c.config = nil
	}
	c.early.Store(false)
}
