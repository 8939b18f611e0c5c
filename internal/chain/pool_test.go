package chain

import (
	"bytes"
	"crypto/x509"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestTrust: a pool whose content has changed has another trust, and a constraint is seen.
func TestTrust(t *testing.T) {
	pool := x509.NewCertPool()
	a := trustIn(pool, nil)
	if len(a.roots) != 0 || a.asks || trustIn(pool, a) != a {
		t.Errorf("an empty pool is %+v", a)
	}
	pool.AddCert(tlstest.CA().Cert)
	b := trustIn(pool, a)
	if len(b.roots) != 1 || b.asks || trustIn(pool, b) != b {
		t.Errorf("a pool of one is %+v", b)
	}
	pool.AddCertWithConstraint(testChain(t)[0], func([]*x509.Certificate) error { return nil })
	c := trustIn(pool, b)
	if len(c.roots) != 2 || !c.asks || trustIn(pool, c) != c {
		t.Errorf("a pool with a constraint is %+v", c)
	}
	if !trustIn(pool.Clone(), nil).asks {
		t.Error("a copy has lost the constraint")
	}
}

// TestChainCacheTrustChangesMeanwhile: if the pool changes during a verification, the chain is not
// remembered.
func TestChainCacheTrustChangesMeanwhile(t *testing.T) {
	chain, now := testChain(t), time.Now()
	pool := x509.NewCertPool()
	cache := newCache(4, pool, nil)
	key := cacheKey{peer: peer{server: true}}
	_, _, before := cache.get(key, now)
	pool.AddCert(tlstest.CA().Cert)
	if cache.put(key, chain[:1], [][]*x509.Certificate{chain}, now, before); len(cache.entries) != 0 {
		t.Error("remembered")
	}
	if cache.keep(key, chain[:1], [][]*x509.Certificate{chain}, now); cache.hit(key, now) == nil {
		t.Error("not remembered when nothing changes")
	}
	pool.AddCert(chain[0])
	if cache.hit(key, now) != nil {
		t.Error("hit after the pool has grown")
	}
}

// TestChainCacheFallbackRoots: x509.SetFallbackRoots replaces the system's pool with another one,
// which may have constraints. It can be called only once in a process, so the test runs in a
// process of its own.
func TestChainCacheFallbackRoots(t *testing.T) {
	if os.Getenv("OSSL_TEST_FALLBACK") == "" {
		self := tlstest.Self()
		cmd := exec.CommandContext(t.Context(), self[0], append(self[1:], "-test.run=^TestChainCacheFallbackRoots$", "-test.v")...)
		cmd.Env = append(os.Environ(), "OSSL_TEST_FALLBACK=1", "GODEBUG=x509usefallbackroots=1", "OSSL_TEST_FIPS=",
			"GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestChainCacheFallbackRoots (")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	pool, now := x509.NewCertPool(), time.Now()
	before := trustInSystem(now)
	if before.asks || trustInSystem(now.Add(systemLookEvery)) != before {
		t.Error("roots that are the same are other ones")
	}
	x509.SetFallbackRoots(pool)
	after := trustInSystem(now.Add(2 * systemLookEvery))
	if after == before && len(before.roots) > 0 {
		t.Error("fallback roots aren't seen")
	}
	var deny atomic.Bool
	pool.AddCertWithConstraint(tlstest.CA().Cert, func([]*x509.Certificate) error {
		if deny.Load() {
			return errors.New("denied")
		}
		return nil
	})
	if with := trustInSystem(now.Add(3 * systemLookEvery)); with == after || !with.asks {
		t.Error("a constraint of the fallback roots isn't seen")
	}
	v := New(Config{CacheSize: 100})
	packed := pack(tlstest.ServerCert(tlstest.P256).Certificate)
	if _, _, refused := v.VerifyServer(packed, tlstest.ServerName, now); refused != nil {
		t.Fatal(refused.Err)
	}
	deny.Store(true)
	if _, _, refused := v.VerifyServer(packed, tlstest.ServerName, now); refused == nil {
		t.Error("accepted after the constraint has changed its answer")
	}
}

// TestChainCacheSystemRoots: chains that the system's roots vouch for are remembered, if there are
// any.
func TestChainCacheSystemRoots(t *testing.T) {
	chain, now := testChain(t), time.Now()
	_, err := x509.SystemCertPool()
	cache := newCache(4, nil, nil)
	cache.keep(cacheKey{}, chain[:1], [][]*x509.Certificate{chain}, now)
	if hit := cache.hit(cacheKey{}, now) != nil; hit != (err == nil) {
		t.Errorf("hit %v, where crypto/x509 has system roots, or says: %v", hit, err)
	}
}
