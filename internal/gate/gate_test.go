package gate_test

import (
	"errors"
	"math/rand"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// enter takes a place at g, and gives up when stop is closed.
func enter(g *gate.Gate, s *gate.Share, stop <-chan struct{}) error {
	return g.Enter(s, func(ready <-chan struct{}) error {
		select {
		case <-ready:
			return nil
		case <-stop:
			return net.ErrClosed
		}
	})
}

// TestGateInOrder: waiters enter a gate in the order in which they came, and one that gives up
// takes no place.
func TestGateInOrder(t *testing.T) {
	const waiters = 10
	g := gate.New(1)
	if err := enter(g, nil, nil); err != nil {
		t.Fatal(err)
	}
	entered := make(chan int)
	var stops [waiters]chan struct{}
	var errs [waiters]chan error
	for i := range waiters {
		stops[i], errs[i] = make(chan struct{}), make(chan error, 1)
		go func() {
			err := enter(g, nil, stops[i])
			errs[i] <- err
			if err == nil {
				entered <- i
			}
		}()
		tlstest.WaitUntil(t, func() bool { return g.Waiting() == i+1 })
	}
	for i := 1; i < waiters; i += 3 {
		close(stops[i])
		if err := <-errs[i]; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%d gave up and got %v", i, err)
		}
	}
	for i := range waiters {
		if i%3 == 1 {
			continue
		}
		g.Leave(nil)
		if got := <-entered; got != i {
			t.Errorf("%d entered, and %d was the next", got, i)
		}
	}
	g.Leave(nil)
	if g.Free() != 1 || g.Waiting() != 0 {
		t.Errorf("%d places, %d waiting", g.Free(), g.Waiting())
	}
}

// TestGateIsFair: fifty users fill their shares and never leave, and the next one finds a place at
// once.
func TestGateIsFair(t *testing.T) {
	const places = gate.Max
	g := gate.New(places)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for user := range 50 {
		s := gate.NewShare(128)
		for range 130 {
			all.Go(func() { _ = enter(g, s, stop) })
		}
		tlstest.WaitUntil(t, func() bool { return places-g.Free()+g.Waiting() == (user+1)*130 })
		if g.Free() == 0 {
			t.Fatalf("no place is left after %d users", user+1)
		}
	}
	none := make(chan struct{})
	close(none)
	if err := enter(g, gate.NewShare(1), none); err != nil {
		t.Error("a new user has to wait")
	}
	close(stop)
	all.Wait()
}

// TestGateResize: more places are for those that wait; fewer are none until as many have left.
func TestGateResize(t *testing.T) {
	g := gate.New(2)
	inside, stop := make(chan struct{}, 10), make(chan struct{})
	for range 4 {
		go func() {
			if enter(g, nil, stop) == nil {
				inside <- struct{}{}
			}
		}()
	}
	step := func(free, waiting int) {
		t.Helper()
		tlstest.WaitUntil(t, func() bool { return len(inside) == 4-waiting && g.Waiting() == waiting })
		if g.Free() != free {
			t.Errorf("%d places are free, want %d", g.Free(), free)
		}
	}
	step(0, 2)
	g.Resize(3)
	step(0, 1)
	g.Resize(1)
	step(-2, 1)
	g.Leave(nil)
	g.Leave(nil)
	step(0, 1)
	g.Leave(nil)
	step(0, 0)
	g.Leave(nil)
	step(1, 0)
	g.Resize(3)
	step(3, 0)
}

// TestGateConcurrently: the number of places never changes.
func TestGateConcurrently(t *testing.T) {
	const places = 5
	g := gate.New(places)
	shares := []*gate.Share{nil, gate.NewShare(1), gate.NewShare(3), gate.NewShare(places)}
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewSource(int64(i)))
			for range 500 {
				s := shares[random.Intn(len(shares))]
				stop := make(chan struct{})
				if random.Intn(3) == 0 {
					go close(stop)
				}
				if enter(g, s, stop) != nil {
					continue
				}
				n := inside.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				runtime.Gosched()
				inside.Add(-1)
				g.Leave(s)
			}
		})
	}
	for n := range 100 { // fewer for a while
		g.Resize(places - n%places)
		runtime.Gosched()
	}
	g.Resize(places)
	all.Wait()
	if g.Free() != places || g.Waiting() != 0 || most.Load() > places {
		t.Errorf("%d places left of %d, %d waiting, %d inside at most", g.Free(), places, g.Waiting(), most.Load())
	}
}
