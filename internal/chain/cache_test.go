package chain

import (
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

func testChain(t *testing.T) []*x509.Certificate {
	t.Helper()
	leaf, err := x509.ParseCertificate(tlstest.ServerCert(tlstest.P256).Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return []*x509.Certificate{leaf, tlstest.CA().Cert}
}

func testCache(size int) *cache {
	return newCache(size, x509.NewCertPool(), x509.NewCertPool())
}

// keep uses the cache as a verification at the time now would; hit reports whether a later look
// finds the chain.
func (c *cache) keep(key cacheKey, certs []*x509.Certificate, chains [][]*x509.Certificate, now time.Time) {
	_, trusted := c.entry(key, now)
	c.put(key, certs, chains, now, trusted)
}

func (c *cache) hit(key cacheKey, now time.Time) *cacheEntry {
	e, _ := c.entry(key, now)
	return e
}

func TestChainCacheTime(t *testing.T) {
	chain := testChain(t)
	key := cacheKey{peer: peer{name: "a"}}
	now := time.Now()
	for _, c := range []struct {
		what string
		at   time.Time
		hit  bool
	}{
		{"at once", now, true},
		{"within its age", now.Add(maxAge - time.Second), true},
		{"beyond its age", now.Add(maxAge + time.Second), false},
		{"before it was verified", now.Add(-time.Second), false},
	} {
		cache := testCache(4)
		cache.keep(key, chain[:1], [][]*x509.Certificate{chain}, now)
		if got := cache.hit(key, c.at) != nil; got != c.hit {
			t.Errorf("%s: hit %v, want %v", c.what, got, c.hit)
		}
	}

	// If any certificate in a chain expires sooner than maxAge, the entry expires with it.
	ca := *chain[1]
	ca.NotAfter = now.Add(time.Minute)
	cache := testCache(4)
	cache.keep(key, chain[:1], [][]*x509.Certificate{{chain[0], &ca}}, now)
	if cache.hit(key, now.Add(59*time.Second)) == nil {
		t.Error("miss while the chain is valid")
	}
	if cache.hit(key, now.Add(61*time.Second)) != nil {
		t.Error("hit after a certificate of the chain has ended")
	}
	if len(cache.entries) != 0 {
		t.Error("a dead entry stays")
	}
}

func TestChainCacheKeyAndBound(t *testing.T) {
	chain := testChain(t)
	now := time.Now()
	cache := testCache(8)
	for i := range 100 {
		cache.keep(cacheKey{peer: peer{name: fmt.Sprint(i)}}, chain[:1], [][]*x509.Certificate{chain}, now)
		if len(cache.entries) > 8 {
			t.Fatalf("%d entries in a cache of 8", len(cache.entries))
		}
	}
	if cache.hit(cacheKey{peer: peer{name: "99"}}, now) == nil {
		t.Error("the newest entry is gone")
	}
	if cache.hit(cacheKey{peer: peer{name: "100"}}, now) != nil {
		t.Error("another name hits")
	}
	if cache.hit(cacheKey{[32]byte{1}, peer{name: "99"}}, now) != nil {
		t.Error("another chain hits")
	}
	if cache.hit(cacheKey{peer: peer{true, "99"}}, now) != nil {
		t.Error("the other role hits")
	}
	cache.keep(cacheKey{peer: peer{name: "unverified"}}, chain[:1], nil, now)
	if cache.hit(cacheKey{peer: peer{name: "unverified"}}, now) != nil {
		t.Error("a chain that was not verified is remembered")
	}
	off := testCache(0)
	off.keep(cacheKey{}, chain, [][]*x509.Certificate{chain}, now)
	if off.hit(cacheKey{}, now) != nil {
		t.Error("a cache that is off hits")
	}
}
