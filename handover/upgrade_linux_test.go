//go:build cgo || ossl_nocgo

package handover_test

import (
	"crypto/tls"
	"flag"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

var (
	connections = flag.Int("handover.connections", 50, "connections of TestUpgrades")
	kills       = flag.Int("handover.kills", 20, "kills of TestKill, of both processes together")
)

// connect connects n peers to a fleet.
func connect(t *testing.T, f *fleet, n int, seen *sight) []*peer {
	t.Helper()
	peers := make([]*peer, n)
	// The load stays the same, however many they are.
	interval := max(5*time.Millisecond, time.Duration(n)*200*time.Microsecond)
	limit := make(chan struct{}, 20)
	var wg sync.WaitGroup
	for i := range peers {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			var err error
			if peers[i], err = dial(f.addr, i, interval, seen); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, p := range peers {
		p.start()
	}
	return peers
}

// awaitTraffic waits until every peer could have had several messages come back.
func awaitTraffic(t *testing.T, peers []*peer, seen *sight) {
	t.Helper()
	want := seen.received.Load() + int64(2*len(peers))
	deadline := time.Now().Add(tlstest.Patience)
	for seen.received.Load() < want {
		if time.Now().After(deadline) {
			t.Fatal("the traffic has stopped")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestUpgrades: ten upgrades under load cost no connection and no byte. -v prints the pauses.
func TestUpgrades(t *testing.T) {
	f := startFleet(t)
	seen := new(sight)
	peers := connect(t, f, *connections, seen)
	visits := visit(t, f.addr)
	awaitTraffic(t, peers, seen)
	t.Logf("slowest answers before: %v", slowest(peers))
	for i := range 10 {
		pids := f.all()
		if err := syscall.Kill(pids[len(pids)-1], syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		took, left := f.await("took", i+1), f.await("left", i+1)
		t.Logf("%v: %v, %v, %v; slowest answers %v", time.Since(began).Round(time.Millisecond), took, left, f.await("pauses", i+1),
			slowest(peers))
		if n, err := strconv.Atoi(left[2]); err != nil || n < len(peers) || left[4] != "0" || left[5] != "<nil>" || took[2] != "<nil>" {
			t.Errorf("upgrade %d: %v, %v", i, took, left)
		}
		awaitTraffic(t, peers, seen)
		t.Logf("then slowest answers %v", slowest(peers))
	}
	finishAll(peers, func(i int, err error) { t.Errorf("peer %d: %v", i, err) })
	if n := visits(); n < 10 {
		t.Errorf("%d short connections were made", n)
	}
	t.Logf("%d messages came back, %d KeyUpdates were sent, %d explicit nonces were seen", seen.received.Load(), seen.updates.Load(),
		seen.records.Load())
	if seen.updates.Load() == 0 || seen.records.Load() == 0 {
		t.Error("no KeyUpdates, or no explicit nonces")
	}
}

// visit makes short connections, one after the other, until stop is called, which returns their
// number. None may fail.
func visit(t *testing.T, addr string) (stop func() int) {
	n, stopped, done := 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for ; ; n++ {
			select {
			case <-stopped:
				return
			case <-time.After(5 * time.Millisecond): // ports run out otherwise
			}
			conn, err := tls.Dial("tcp", addr, tlstest.ClientConfig())
			if err != nil {
				t.Errorf("short connection %d: %v", n, err)
				return
			}
			conn.SetDeadline(time.Now().Add(tlstest.Patience))
			buf := make([]byte, 5)
			_, err = conn.Write([]byte("visit"))
			if err == nil {
				_, err = io.ReadFull(conn, buf)
			}
			conn.Close()
			if err != nil || string(buf) != "visit" {
				t.Errorf("short connection %d: %q, %v", n, buf, err)
				return
			}
		}
	}()
	return func() int {
		close(stopped)
		<-done
		return n
	}
}

// slowest returns the slowest answers of the peers since the last call: the median, and the longest.
func slowest(peers []*peer) []time.Duration {
	var all []time.Duration
	for _, p := range peers {
		all = append(all, time.Duration(p.slowest.Swap(0)).Round(10*time.Microsecond))
	}
	slices.Sort(all)
	return []time.Duration{all[len(all)/2], all[len(all)-1]}
}

// finishAll finishes all peers, and reports those whose stream isn't whole.
func finishAll(peers []*peer, report func(i int, err error)) {
	var wg sync.WaitGroup
	for i, p := range peers {
		wg.Go(func() {
			if err := p.finish(); err != nil {
				report(i, err)
			}
		})
	}
	wg.Wait()
}

// TestKill: whichever process is killed, and whenever, each connection is whole or closed.
func TestKill(t *testing.T) {
	var whole, ended int
	if testing.Short() {
		*kills = min(*kills, 6)
	}
	for i := range *kills {
		f := startFleet(t)
		seen := new(sight)
		peers := connect(t, f, 20, seen)
		awaitTraffic(t, peers, seen)
		if err := syscall.Kill(f.all()[0], syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		f.await("started", 2)
		time.Sleep(rand.N(60 * time.Millisecond))
		if err := syscall.Kill(f.all()[i%2], syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
		var mu sync.Mutex
		whole += len(peers)
		finishAll(peers, func(n int, err error) {
			mu.Lock()
			defer mu.Unlock()
			whole--
			ended++
			if !isEnd(err) {
				t.Errorf("kill %d, peer %d: %v", i, n, err)
			}
		})
		f.killAll()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d connections were whole, and %d had ended", whole, ended)
}
