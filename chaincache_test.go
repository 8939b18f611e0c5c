package ossl

import (
	"crypto/tls"
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

func testChainCache(size int) *chainCache {
	return newChainCache(size, x509.NewCertPool(), x509.NewCertPool())
}

// keep uses the cache as a verification at the time now would; hit reports whether a later look finds the chain.
func (c *chainCache) keep(key chainKey, certs []*x509.Certificate, chains [][]*x509.Certificate, now time.Time) {
	_, trusted := c.entry(key, now)
	c.put(key, certs, chains, now, trusted)
}

func (c *chainCache) hit(key chainKey, now time.Time) *chainEntry {
	e, _ := c.entry(key, now)
	return e
}

func TestChainCacheTime(t *testing.T) {
	chain := testChain(t)
	key := chainKey{name: "a"}
	now := time.Now()
	for _, c := range []struct {
		what string
		at   time.Time
		hit  bool
	}{
		{"at once", now, true},
		{"within its age", now.Add(maxChainAge - time.Second), true},
		{"beyond its age", now.Add(maxChainAge + time.Second), false},
		{"before it was verified", now.Add(-time.Second), false},
	} {
		cache := testChainCache(4)
		cache.keep(key, chain[:1], [][]*x509.Certificate{chain}, now)
		if got := cache.hit(key, c.at) != nil; got != c.hit {
			t.Errorf("%s: hit %v, want %v", c.what, got, c.hit)
		}
	}

	// A certificate anywhere in a chain that ends sooner than maxChainAge ends the entry.
	ca := *chain[1]
	ca.NotAfter = now.Add(time.Minute)
	cache := testChainCache(4)
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
	cache := testChainCache(8)
	for i := range 100 {
		cache.keep(chainKey{name: fmt.Sprint(i)}, chain[:1], [][]*x509.Certificate{chain}, now)
		if len(cache.entries) > 8 {
			t.Fatalf("%d entries in a cache of 8", len(cache.entries))
		}
	}
	if cache.hit(chainKey{name: "99"}, now) == nil {
		t.Error("the newest entry is gone")
	}
	if cache.hit(chainKey{name: "100"}, now) != nil {
		t.Error("another name hits")
	}
	if cache.hit(chainKey{name: "99", sum: [32]byte{1}}, now) != nil {
		t.Error("another chain hits")
	}
	if cache.hit(chainKey{name: "99", server: true}, now) != nil {
		t.Error("the other role hits")
	}
	cache.keep(chainKey{name: "unverified"}, chain[:1], nil, now)
	if cache.hit(chainKey{name: "unverified"}, now) != nil {
		t.Error("a chain that nobody verified is remembered")
	}
	var off *chainCache = testChainCache(0)
	off.keep(chainKey{}, chain, [][]*x509.Certificate{chain}, now)
	if off.hit(chainKey{}, now) != nil {
		t.Error("a cache that is off hits")
	}
}

// TestChainCacheInHandshakes shows that a hit gives what a verification gives, and that what the key pins makes a miss.
func TestChainCacheInHandshakes(t *testing.T) {
	now := time.Now()
	clock := now
	config := tlstest.ClientConfig(func(c *tls.Config) { c.Time = func() time.Time { return clock } })
	client, err := NewContext(config)
	if err != nil {
		t.Fatal(err)
	}
	server, err := NewContext(tlstest.ServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	shake := func(name string) (tls.ConnectionState, error) {
		a, b := tlstest.Buffered()
		defer a.Close()
		defer b.Close()
		go server.Server(b).Handshake()
		c := client.Client(a, name)
		err := c.Handshake()
		return c.ConnectionState(), err
	}
	first, err := shake(tlstest.ServerName)
	if err != nil {
		t.Fatal(err)
	}
	second, err := shake(tlstest.ServerName)
	if err != nil {
		t.Fatal(err)
	}
	if len(client.chains.entries) != 1 {
		t.Fatalf("%d entries after two handshakes with one chain", len(client.chains.entries))
	}
	if first.PeerCertificates[0] != second.PeerCertificates[0] {
		t.Error("the second handshake did not hit")
	}
	if a, b := tlstest.DescribeState(first), tlstest.DescribeState(second); a != b {
		t.Errorf("states differ:\n%s\n%s", a, b)
	}
	if _, err := shake(tlstest.OtherName); err == nil {
		t.Error("accepted for another name")
	}
	clock = now.Add(200 * 365 * 24 * time.Hour)
	if _, err := shake(tlstest.ServerName); err == nil {
		t.Error("accepted after the certificate's end")
	}
	if len(client.chains.entries) != 0 {
		t.Error("a refusal is remembered, or a dead entry stays")
	}
}
