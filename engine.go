package ossl

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ossl-go/ossl/internal/libssl"
)

// An engine is the part of a connection that C holds: an SSL or, after the takeover, the keys of
// both directions. Its lock is held for each crossing into C except a directOpener's, and never
// across network I/O. With libssl's records, one thread at a time may use the SSL; with ossl's own,
// the lock puts the records that Writes and Reads seal in order.
//
// The sealer and the queue belong to the engine rather than to the writer, because a Read that has
// an alert or the answer to a KeyUpdate seals it at once, however long a Write has been blocked in
// the network with the writer's lock.
type engine struct {
	mu      sync.Mutex
	ssl     *libssl.Conn    // guarded by mu; nil before the handshake begins and after the end
	sealer  sealer          // guarded by mu; nil until the handshake is done
	direct  directSealer    // guarded by mu; the sealer after a takeover
	queue   outQueue        // guarded by mu, except for its atomic field
	cleanup runtime.Cleanup // guarded by mu; frees ssl if the connection is dropped without Close

	// released asks the holder of the lock to free ssl when unlocking.
	released atomic.Bool
}

// begin makes ssl the connection's. cleanup frees it if the connection is dropped.
func (e *engine) begin(ssl *libssl.Conn, cleanup runtime.Cleanup) {
	e.mu.Lock()
	defer e.unlock()
	e.ssl, e.cleanup = ssl, cleanup
}

// lock locks the engine. Every successful call needs an unlock. It returns net.ErrClosed if C holds
// nothing of the connection.
func (e *engine) lock() (*libssl.Conn, error) {
	e.mu.Lock()
	if e.ssl == nil || e.released.Load() {
		e.unlock()
		return nil, net.ErrClosed
	}
	return e.ssl, nil
}

// unlock unlocks the engine and frees ssl if release was called in the meantime.
func (e *engine) unlock() {
	e.mu.Unlock()
	if e.released.Load() {
		e.tryFree()
	}
}

// release frees ssl now, or when the crossing under way returns. It never waits.
func (e *engine) release() {
	e.released.Store(true)
	e.tryFree()
}

// tryFree frees ssl unless the engine is locked: then unlock does.
func (e *engine) tryFree() {
	if !e.mu.TryLock() {
		return
	}
	e.freeLocked()
	e.mu.Unlock()
}

// freeLocked frees ssl, except the reading side of a connection that was taken over.
func (e *engine) freeLocked() {
	switch {
	case e.ssl == nil:
		return
	case e.sealer == nil:
		e.ssl.Free(false, nil)
	default:
		e.sealer.free()
	}
	e.forgetLocked()
}

// close seals close_notify into out, and frees ssl. The engine is locked.
func (e *engine) close(in *reader, out []byte) sealed {
	defer e.forgetLocked()
	return e.sealer.close(in, out)
}

// forgetLocked forgets ssl, which has been freed.
func (e *engine) forgetLocked() {
	e.ssl = nil
	e.cleanup.Stop()
}
