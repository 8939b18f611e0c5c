package ossl

import (
	"sync"
	"sync/atomic"
)

// An interlock orders a connection's Writes, and the Reads that send something, against Close.
type interlock struct {
	// active is crypto/tls's activeCall: Close sets the low bit, the rest counts Writes.
	active   atomic.Int32
	flushing atomic.Int32         // Reads that are sending queued records
	move     atomic.Pointer[move] // a Detach under way, or the one that has succeeded

	mu   sync.Mutex    // held for an instant
	done chan struct{} // guarded by mu; nil until closed asks for it
}

// beginWrite announces a Write. It fails after Close.
func (l *interlock) beginWrite() bool {
	for {
		x := l.active.Load()
		if x&1 != 0 {
			return false
		}
		if l.active.CompareAndSwap(x, x+2) {
			return true
		}
	}
}

// endWrite undoes beginWrite when the Write is over.
func (l *interlock) endWrite() { l.active.Add(-2) }

// beginFlush announces a Read that sends queued records. It fails after Close, which sends them.
// Either Close sees the announcement, or beginFlush sees Close. endFlush must be called in both
// cases.
func (l *interlock) beginFlush() bool {
	l.flushing.Add(1)
	return !l.isClosed()
}

func (l *interlock) endFlush() { l.flushing.Add(-1) }

// close marks the connection as closed and wakes the goroutines that wait for closed. It reports
// whether a Write was under way, and fails if the connection was closed before.
func (l *interlock) close() (writing, ok bool) {
	for {
		x := l.active.Load()
		if x&1 != 0 {
			return false, false
		}
		if l.active.CompareAndSwap(x, x|1) {
			l.signal()
			return x != 0, true
		}
	}
}

func (l *interlock) isClosed() bool { return l.active.Load()&1 != 0 }

// closed returns a channel that close closes.
func (l *interlock) closed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.isClosed() {
			close(l.done)
		}
	}
	return l.done
}

// signal closes the channel that closed has returned, if any. Only the first close calls it, after
// it has set active, so that the channel is closed once.
func (l *interlock) signal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done != nil {
		select {
		case <-l.done: // closed has seen active first
		default:
			close(l.done)
		}
	}
}
