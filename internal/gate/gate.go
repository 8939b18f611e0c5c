// Package gate bounds the number of goroutines that are inside C at the same time, since each of
// them holds a thread there. The others wait in Go.
package gate

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// A Gate has a number of places for goroutines. Those that find no place wait for one, in the order
// in which they came.
type Gate struct {
	free    atomic.Int64 // places; negative after Resize, until as many have left
	waiters atomic.Int64 // the length of waiting, or one more while Enter looks for a place

	mu      sync.Mutex
	places  int       // guarded by mu
	waiting list.List // guarded by mu; of *waiter
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
func New(places int) *Gate {
	g := &Gate{places: places}
	g.free.Store(int64(places))
	return g
}

// Resize changes the number of places, and reports whether it was another. If there are more goroutines inside,
// they stay.
func (g *Gate) Resize(places int) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.places == places {
		return false
	}
	g.free.Add(int64(places - g.places))
	g.places = places
	g.admit()
	return true
}

// NewShare returns a share of at most max places.
func NewShare(max int) *Share { return &Share{max: max} }

// take takes a place without a share, if there is one.
func (g *Gate) take() bool {
	for {
		n := g.free.Load()
		if n <= 0 {
			return false
		}
		if g.free.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// takeFor takes a place for s, which may be nil, if there is one. mu is locked.
func (g *Gate) takeFor(s *Share) bool {
	if s == nil {
		return g.take()
	}
	if s.in >= s.max || int64(s.in) > g.free.Load()/8 || !g.take() {
		return false
	}
	s.in++
	return true
}

// Enter takes a place for s, which may be nil. If there is none, it calls wait, which must return
// nil when ready is closed, or an error with the reason why it stopped waiting before. As long as
// nobody waits, a goroutine without a share enters and leaves with one atomic write each.
func (g *Gate) Enter(s *Share, wait func(ready <-chan struct{}) error) error {
	if s == nil && g.waiters.Load() == 0 && g.take() {
		return nil
	}
	g.mu.Lock()
	g.waiters.Add(1) // before the look at free: Leave looks at waiters after it has changed free
	g.admit()        // they came before
	if g.takeFor(s) {
		g.waiters.Add(-1)
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
	g.waiters.Add(-1)
}

// Leave gives back a place of s.
func (g *Gate) Leave(s *Share) {
	if s == nil {
		g.free.Add(1)
		if g.waiters.Load() == 0 {
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.admit()
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.give(s)
}

// give gives back a place of s. mu is locked.
func (g *Gate) give(s *Share) {
	g.free.Add(1)
	if s != nil {
		s.in--
	}
	g.admit()
}

// admit admits the waiters that have a place now. mu is locked.
func (g *Gate) admit() {
	for e := g.waiting.Front(); e != nil && g.free.Load() > 0; {
		w, next := e.Value.(*waiter), e.Next()
		if g.takeFor(w.share) {
			g.waiting.Remove(e)
			g.waiters.Add(-1)
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

// Free returns the number of free places. It is negative if Resize took some that are in use.
func (g *Gate) Free() int { return int(g.free.Load()) }

// Used returns the number of places that s has.
func (g *Gate) Used(s *Share) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return s.in
}
