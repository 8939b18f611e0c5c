package ossl

import (
	"runtime"
	"sync"
)

// A gate bounds how many goroutines are inside C at the same time, since each of them holds a thread there. The others wait in Go,
// in the order in which they came.
type gate struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter
}

// A share is what one user of a gate may have of it: at most max places, and, beyond its first one, at most an eighth as many as are
// free. So users who fill their shares and never leave keep a place free for the next ones, and dozens of them do.
type share struct {
	max int
	in  int // guarded by the gate's mu
}

type waiter struct {
	share *share
	ready chan struct{} // closed when the waiter has its place
}

// steps bounds the handshakes that are inside C and compute. More of them at once would finish none of them sooner, and cost
// threads.
var steps = sync.OnceValue(func() *gate { return newGate(4 * runtime.GOMAXPROCS(0)) })

// maxBlockedThreads is how many threads of the process tokens may hold by signing. Go ends the process at 10,000 threads.
const maxBlockedThreads = 2048

// blocked bounds the threads that wait in C: for a token's signature, or, where libssl.PausesHoldThreads, for Go.
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

// enter takes a place. Where there is none it waits until wait returns: with nil if ready was closed, or else with why it waits no
// longer.
func (g *gate) enter(s *share, wait func(ready <-chan struct{}) error) error {
	g.mu.Lock()
	if g.admits(s) { // nobody who waits could be admitted: they are when a place becomes free
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

// abandon takes back what w has waited for.
func (g *gate) abandon(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.waiting {
		if other == w {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return
		}
	}
	g.give(w.share) // it had its place already
}

// leave gives a place back.
func (g *gate) leave(s *share) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.give(s)
}

// give gives a place back, and lets those in who can be admitted now. mu is held.
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
