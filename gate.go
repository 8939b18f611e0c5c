package ossl

import (
	"runtime"
	"sync"
)

// A gate bounds how many goroutines are inside C at the same time, since each of them holds a thread there. The others wait in
// Go, in the order in which they came.
type gate struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter
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
	ready chan struct{} // closed when the waiter has its place
}

// steps bounds the handshakes that compute inside C. More of them at once would finish none of them sooner, and cost threads.
var steps = sync.OnceValue(func() *gate { return newGate(4 * runtime.GOMAXPROCS(0)) })

// maxBlockedThreads is how many threads of the process the gate blocked admits. Go ends a process at 10,000 threads.
const maxBlockedThreads = 2048

// blocked bounds the threads that wait in C: for a token's signature or, if libssl.PausesHoldThreads, for Go.
var blocked = newGate(maxBlockedThreads)

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
	w := &waiter{s, make(chan struct{})}
	g.waiting = append(g.waiting, w)
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
	for i, other := range g.waiting {
		if other == w {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return
		}
	}
	g.give(w.share) // it had got its place
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
	left := g.waiting[:0]
	for _, w := range g.waiting {
		if g.admits(w.share) {
			g.take(w.share)
			close(w.ready)
		} else {
			left = append(left, w)
		}
	}
	clear(g.waiting[len(left):])
	g.waiting = left
}
