//go:build cgo || ossl_nocgo

package ossl

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestHandshakesCountOnce: a handshake changes no counters but its Context's, and still counts for the
// process, even when the Context was collected.
func TestHandshakesCountOnce(t *testing.T) {
	handshakes := func(s Stats) (n uint64) {
		for _, h := range s.Handshakes {
			n += h.Count
		}
		return n
	}
	runtime.GC() // of other tests' Contexts
	registered := func(c *counters) bool {
		living.mu.Lock()
		defer living.mu.Unlock()
		_, ok := living.all[c]
		return ok
	}
	before := ProcessStats()
	var server, client *counters
	func() {
		s, c := contextOf(t, tlstest.ServerConfig()), contextOf(t, tlstest.ClientConfig())
		server, client = s.observer.counters, c.observer.counters
		for range 3 {
			c, s := pair(t, c, s)
			c.Close()
			s.Close()
		}
		if n := handshakes(s.Stats()); n != 3 {
			t.Errorf("the server has counted %d handshakes, want 3", n)
		}
	}()
	for deadline := time.Now().Add(tlstest.Patience); registered(server) || registered(client); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the counters of collected Contexts stay")
		}
		runtime.GC()
	}
	after := ProcessStats()
	if n := handshakes(after) - handshakes(before); n != 6 {
		t.Errorf("the process has counted %d handshakes, want 6", n)
	}
	if after.OpenConns != before.OpenConns {
		t.Errorf("%d connections are open, before %d", after.OpenConns, before.OpenConns)
	}
}

// TestCountersAdd checks that addTo adds every count.
func TestCountersAdd(t *testing.T) {
	c := new(counters)
	c.handshake(HandshakeStats{Server: true, Version: 0x304}, time.Millisecond)
	increment(&c.failures, FailureStats{Server: true})
	increment(&c.broken, FailureStats{})
	c.handshake(HandshakeStats{Server: true, Version: 0x304}, time.Millisecond)
	c.closed.Add(1)
	c.sessions, c.records = SessionCacheStats{1, 2, 3, 4, 5}, RecordStats{1, 2, 3}
	for i, n := range []interface{ Store(uint64) }{&c.read, &c.written, &c.chains.Hits, &c.chains.Misses, &c.certificates.misses,
		&c.certificates.evictions, &c.configurations.misses, &c.configurations.evictions,
		&c.revocation.revoked, &c.revocation.hardFails, &c.revocation.softFails} {
		n.Store(uint64(i + 1))
	}
	sum, one := new(counters), c.snapshot()
	c.addTo(sum)
	if got := sum.snapshot(); !reflect.DeepEqual(got, one) {
		t.Errorf("%+v\nwant %+v", got, one)
	}
	var unset func(v reflect.Value, name string)
	unset = func(v reflect.Value, name string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				unset(v.Field(i), name+"."+v.Type().Field(i).Name)
			}
		case reflect.Slice:
			if v.Len() == 0 {
				t.Errorf("the test has no %s", name)
			}
		case reflect.Uint64:
			if v.IsZero() {
				t.Errorf("the test has no %s", name)
			}
		}
	}
	unset(reflect.ValueOf(one), "Stats")
	c.addTo(sum)
	two := sum.snapshot()
	if two.Handshakes[0].Count != 4 || two.Failures[0].Count != 2 || two.Broken[0].Count != 2 || two.Durations[0].Count != 4 ||
		two.Durations[0].Sum != 4*time.Millisecond || two.OpenConns != 2 || two.BytesRead != 2 || two.SessionCache.PutErrors != 10 {
		t.Errorf("twice: %+v", two)
	}
}
