package ossl

import (
	"container/list"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// A gate bounds how many goroutines are inside C at the same time, since each of them holds a thread there. The others wait in
// Go, in the order in which they came.
type gate struct {
	mu      sync.Mutex
	free    int
	waiting list.List // of *waiter
}

// A share limits the places that one user of a gate may take: at most max, and for each one after the first, the user must have
// no more than an eighth of the number of free places. So even if dozens of users fill their shares and never leave, there is a
// place for the next one.
type share struct {
	max int
	in  int // guarded by the gate's mu
}

type waiter struct {
	share *share
	at    *list.Element // guarded by the gate's mu; nil once the waiter has its place
	ready chan struct{} // closed then
}

// steps bounds the handshakes that compute inside C. More of them at once would finish none of them sooner, and cost threads.
var steps = sync.OnceValue(func() *gate { return newGate(4 * runtime.GOMAXPROCS(0)) })

// maxBlockedThreads is how many threads of the process the gate blocked admits. Go ends a process at 10,000 threads.
const maxBlockedThreads = 2048

// blocked bounds the threads that wait in C for a token's signature.
var blocked = newGate(maxBlockedThreads)

// pausedThreads bounds the threads that wait in C for Go, if libssl.PausesHoldThreads.
var pausedThreads = newGate(maxBlockedThreads)

// maxPaused bounds the handshakes of the process that wait for Go in the middle of a step. Each of them holds a stack, which
// takes two mappings, and Linux allows a process 65,530 (vm.max_map_count, proc_sys_vm(5)): without one, Go ends the process.
// The next handshake is refused and does not wait, because it may be a callback of one of these that it is made for.
const maxPaused = 16384

var paused atomic.Int32 // handshakes

var errTooManyPaused = errors.New("ossl: too many handshakes wait for callbacks and signers")

func newGate(places int) *gate { return &gate{free: places} }

// admits reports whether there is a place for s, which may be nil. mu is held.
func (g *gate) admits(s *share) bool {
	return g.free > 0 && (s == nil || s.in < s.max && s.in <= g.free/8)
}

// take takes a place. mu is held.
func (g *gate) take(s *share) {
	g.free--
	if s != nil {
		s.in++
	}
}

// enter takes a place. If there is none for s, it calls wait, which must return nil when ready is closed, or else an error that
// says why it stopped waiting.
func (g *gate) enter(s *share, wait func(ready <-chan struct{}) error) error {
	g.mu.Lock()
	if g.admits(s) { // no waiter could be admitted: give admits them when a place becomes free
		g.take(s)
		g.mu.Unlock()
		return nil
	}
	w := &waiter{share: s, ready: make(chan struct{})}
	w.at = g.waiting.PushBack(w)
	g.mu.Unlock()
	err := wait(w.ready)
	if err != nil {
		g.abandon(w)
	}
	return err
}

// abandon removes w, or gives back the place that it got.
func (g *gate) abandon(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.at == nil {
		g.give(w.share)
		return
	}
	g.waiting.Remove(w.at)
}

// leave gives a place back.
func (g *gate) leave(s *share) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.give(s)
}

// give gives a place back, and admits the waiters that there is a place for now. mu is held.
func (g *gate) give(s *share) {
	g.free++
	if s != nil {
		s.in--
	}
	for e := g.waiting.Front(); e != nil && g.free > 0; {
		w, next := e.Value.(*waiter), e.Next()
		if g.admits(w.share) {
			g.take(w.share)
			g.waiting.Remove(e)
			w.at = nil
			close(w.ready)
		}
		e = next
	}
}
