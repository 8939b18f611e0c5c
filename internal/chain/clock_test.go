package chain

import (
	"crypto/x509"
	"math/rand/v2"
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
		{"a sleep beyond the age", leaf, maxAge + time.Second, 0, false},
		{"a sleep beyond the end of the certificate", short, 61 * time.Second, 0, false},
		{"a sleep up to the end of the certificate", short, 59 * time.Second, 0, true},
		{"set back before the certificate", leaf, -100 * time.Hour, time.Second, false},
		{"set back by a second", leaf, -time.Second, time.Second, false},
		{"the age by the monotonic clock alone", leaf, 0, maxAge + time.Second, false},
	} {
		cache := testCache(4)
		cache.keep(cacheKey{}, []*x509.Certificate{&c.leaf}, [][]*x509.Certificate{{&c.leaf, chain[1]}}, now)
		at := tlstest.MoveClocks(now, c.wall, c.mono)
		if got := cache.hit(cacheKey{}, at) != nil; got != c.hit {
			t.Errorf("%s: hit %v, want %v", c.what, got, c.hit)
		}
	}

	// The configuration's clock stands still, or has been stopped for good: the machine's clock
	// continues.
	cache := testCache(4)
	machine := now
	cache.clock = func() time.Time { return machine }
	cache.keep(cacheKey{}, chain[:1], [][]*x509.Certificate{chain}, now)
	machine = now.Add(maxAge)
	if cache.hit(cacheKey{}, now) == nil {
		t.Error("miss within the age by the machine's clock")
	}
	machine = now.Add(maxAge + time.Second)
	if cache.hit(cacheKey{}, now) != nil {
		t.Error("hit beyond the age by the machine's clock")
	}
}

// TestChainCacheNeverBeyondVerify moves the clocks, and checks that the cache returns only chains
// that Verify would accept at that moment.
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
		cache := testCache(4)
		cache.clock = func() time.Time { return machine }
		cache.keep(cacheKey{}, []*x509.Certificate{&leaf}, chains, now)
		at := tlstest.MoveClocks(now, within(15*time.Minute), within(15*time.Minute))
		machine = tlstest.MoveClocks(machine, within(15*time.Minute), within(15*time.Minute))
		if random.IntN(2) == 0 { // a clock of the user's has no monotonic reading
			at = at.Round(0)
		}
		if cache.hit(cacheKey{}, at) == nil {
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
