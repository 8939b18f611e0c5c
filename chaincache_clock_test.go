//go:build cgo

package ossl

import (
	"crypto/tls"
	"crypto/x509"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestChainCacheClocks moves the wall clock and the monotonic one apart.
func TestChainCacheClocks(t *testing.T) {
	chain := testChain(t)
	leaf := *chain[0]
	now := time.Now()
	leaf.NotBefore, leaf.NotAfter = now.Add(-time.Hour), now.Add(time.Hour)
	short := leaf
	short.NotAfter = now.Add(time.Minute)
	for _, c := range []struct {
		what       string
		leaf       x509.Certificate
		wall, mono time.Duration
		hit        bool
	}{
		{"neither", leaf, 0, 0, true},
		{"both, a little", leaf, time.Minute, time.Minute, true},
		{"a long sleep", leaf, 100 * time.Hour, time.Second, false},
		{"a sleep beyond the age", leaf, maxChainAge + time.Second, 0, false},
		{"a sleep beyond the end of the certificate", short, 61 * time.Second, 0, false},
		{"a sleep up to the end of the certificate", short, 59 * time.Second, 0, true},
		{"set back before the certificate", leaf, -100 * time.Hour, time.Second, false},
		{"set back by a second", leaf, -time.Second, time.Second, false},
		{"the age by the monotonic clock alone", leaf, 0, maxChainAge + time.Second, false},
	} {
		cache := testChainCache(4)
		cache.keep(chainKey{}, []*x509.Certificate{&c.leaf}, [][]*x509.Certificate{{&c.leaf, chain[1]}}, now)
		at := tlstest.MoveClocks(now, c.wall, c.mono)
		if got := cache.hit(chainKey{}, at) != nil; got != c.hit {
			t.Errorf("%s: hit %v, want %v", c.what, got, c.hit)
		}
	}

	// The configuration's clock stands still, or has been stopped for good: the machine's goes on.
	cache := testChainCache(4)
	machine := now
	cache.clock = func() time.Time { return machine }
	cache.keep(chainKey{}, chain[:1], [][]*x509.Certificate{chain}, now)
	machine = now.Add(maxChainAge)
	if cache.hit(chainKey{}, now) == nil {
		t.Error("miss within the age by the machine's clock")
	}
	machine = now.Add(maxChainAge + time.Second)
	if cache.hit(chainKey{}, now) != nil {
		t.Error("hit beyond the age by the machine's clock")
	}
}

// TestChainCacheNeverBeyondVerify: whatever the clocks do, the cache returns only chains that Verify would accept at that moment.
func TestChainCacheNeverBeyondVerify(t *testing.T) {
	chain := testChain(t)
	leaf, ca := *chain[0], *chain[1]
	roots := x509.NewCertPool()
	roots.AddCert(&ca)
	random := rand.New(rand.NewPCG(1, 2))
	within := func(d time.Duration) time.Duration {
		return (time.Duration(random.Int64N(2*int64(d))) - d).Truncate(time.Second)
	}
	hits, misses := 0, 0
	for range 20000 {
		now := tlstest.MoveClocks(time.Now(), within(15*time.Minute), within(15*time.Minute))
		machine := time.Now()
		for _, cert := range []*x509.Certificate{&leaf, &ca} {
			cert.NotBefore, cert.NotAfter = now.Round(0).Add(within(20*time.Minute)), now.Round(0).Add(within(20*time.Minute))
		}
		verify := func(at time.Time) ([][]*x509.Certificate, error) {
			return leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at})
		}
		chains, err := verify(now)
		if err != nil {
			continue
		}
		cache := testChainCache(4)
		cache.clock = func() time.Time { return machine }
		cache.keep(chainKey{}, []*x509.Certificate{&leaf}, chains, now)
		at := tlstest.MoveClocks(now, within(15*time.Minute), within(15*time.Minute))
		machine = tlstest.MoveClocks(machine, within(15*time.Minute), within(15*time.Minute))
		if random.IntN(2) == 0 { // a clock of the user's has no monotonic reading
			at = at.Round(0)
		}
		if cache.hit(chainKey{}, at) == nil {
			misses++
			continue
		}
		hits++
		if _, err := verify(at); err != nil {
			t.Fatalf("verified at %v, from the cache at %v, where Verify says: %v", now, at, err)
		}
	}
	if hits == 0 || misses == 0 { // there are some 200 and 1000
		t.Errorf("%d hits and %d misses show little", hits, misses)
	}
}

// TestChainCacheClockInHandshakes has the clock move between the handshakes of a Context, with a cache and without.
func TestChainCacheClockInHandshakes(t *testing.T) {
	for _, role := range []string{"client", "server"} {
		for _, moved := range []time.Duration{100 * time.Hour, -100 * time.Hour} {
			for _, entries := range []int{0, 100} {
				var by atomic.Int64
				setClock := func(c *tls.Config) {
					c.Time = func() time.Time { return tlstest.MoveClocks(time.Now(), time.Duration(by.Load()), 0) }
				}
				clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
					c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				})
				serverConfig := tlstest.ServerConfig(func(c *tls.Config) {
					c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
				})
				if role == "client" {
					setClock(clientConfig)
				} else {
					setClock(serverConfig)
				}
				client := contextOf(t, clientConfig, WithVerifiedChainCache(entries))
				server := contextOf(t, serverConfig, WithVerifiedChainCache(entries))
				try := func() error {
					clientErr, serverErr := shakeContexts(client, server)
					if role == "client" {
						return clientErr
					}
					return serverErr
				}
				if err := try(); err != nil {
					t.Fatal(err)
				}
				by.Store(int64(moved))
				if err := try(); err == nil {
					t.Errorf("%s with a cache of %d: accepted when the wall clock alone has moved by %v", role, entries, moved)
				}
			}
		}
	}
}

// TestChainCacheZeroTime: to crypto/x509, and so to crypto/tls, the zero time means now.
func TestChainCacheZeroTime(t *testing.T) {
	client := contextOf(t, tlstest.ClientConfig(func(c *tls.Config) { c.Time = func() time.Time { return time.Time{} } }))
	machine := time.Now()
	client.chains.clock = func() time.Time { return machine }
	server := contextOf(t, tlstest.ServerConfig())
	if err, _ := shakeContexts(client, server); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if len(client.chains.entries) != 1 {
		t.Fatalf("%d chains are remembered", len(client.chains.entries))
	}
	for key, e := range client.chains.entries {
		if e.verified.IsZero() || e.from.After(before) || client.chains.hit(key, before) == nil {
			t.Errorf("the entry is of %v, from %v", e.verified, e.from)
		}
		if client.chains.hit(key, before.Round(0).Add(200*365*24*time.Hour)) != nil {
			t.Error("hit after the certificate's end")
		}
	}
}

func contextOf(t *testing.T, config *tls.Config, opts ...Option) *Context {
	t.Helper()
	ctx, err := NewContext(config, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// shakeContexts returns the error of a handshake of two Contexts at each end. A server's refusal in TLS 1.3 reaches the client
// when it reads.
func shakeContexts(client, server *Context) (clientErr, serverErr error) {
	a, b := tlstest.Buffered()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() { done <- server.Server(b).Handshake() }()
	c := client.Client(a, tlstest.ServerName)
	if clientErr = c.Handshake(); clientErr != nil {
		a.Close()
	}
	return clientErr, <-done
}
