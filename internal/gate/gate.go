// Package gate bounds the number of goroutines that are inside C at the same time, since each of
// them holds a thread there. The others wait in Go.
package gate

import (
	"container/list"
	"sync"
)

// A Gate has a number of places for goroutines. Those that find no place wait for one, in the order
// in which they came.
type Gate struct {
	mu      sync.Mutex
	free    int
	waiting list.List // of *waiter
}

// A Share limits the places that one user of a gate may take. They are at most max, and to get
// another place, the user must have no more than an eighth of the number of free places. So even if
// dozens of users fill their shares and never leave, the next one finds a place.
type Share struct {
	max int
	in  int // guarded by the gate's mu
}

type waiter struct {
	share *Share
	at    *list.Element // guarded by the gate's mu; nil once the waiter has its place
	ready chan struct{} // closed then
}

// Max is the number of places of a gate for goroutines that wait in C, each of which holds a
// thread. Go aborts a process that has more than 10,000 threads.
const Max = 2048

// Tokens is the gate for goroutines that wait in C for the signature of a token.
var Tokens = New(Max)

// New returns a gate with a number of places.
func New(places int) *Gate { return &Gate{free: places} }

// NewShare returns a share of at most max places.
func NewShare(max int) *Share { return &Share{max: max} }

// admits reports whether there is a place for s, which may be nil. mu is locked.
func (g *Gate) admits(s *Share) bool {
	return g.free > 0 && (s == nil || s.in < s.max && s.in <= g.free/8)
}

// take takes a place. mu is locked.
func (g *Gate) take(s *Share) {
	g.free--
	if s != nil {
		s.in++
	}
}

// Enter takes a place for s, which may be nil. If there is none, it calls wait, which must return
// nil when ready is closed, or an error with the reason why it stopped waiting before.
func (g *Gate) Enter(s *Share, wait func(ready <-chan struct{}) error) error {
	g.mu.Lock()
	if g.admits(s) { // waiters can't be: give admits those that can when a place becomes free
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
func (g *Gate) abandon(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.at == nil {
		g.give(w.share)
		return
	}
	g.waiting.Remove(w.at)
}

// Leave gives back a place of s.
func (g *Gate) Leave(s *Share) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.give(s)
}

// give gives back a place of s, and admits the waiters that have a place now. mu is locked.
func (g *Gate) give(s *Share) {
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

// Waiting returns the number of goroutines that wait for a place.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting.Len()
}

// Free returns the number of free places.
func (g *Gate) Free() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.free
}

// Used returns the number of places that s has.
func (g *Gate) Used(s *Share) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return s.in
}
