//go:build cgo

package ossl

import (
	"bytes"
	"crypto/tls"
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

// roles runs a test for the chains that clients verify and for those that servers verify. std and own return the verifying end's
// error.
func roles(t *testing.T, test func(t *testing.T, pool *x509.CertPool, std, own func() error)) {
	for _, role := range []string{"client", "server"} {
		t.Run(role, func(t *testing.T) {
			pool := x509.NewCertPool()
			clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
				c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				c.ServerName = tlstest.ServerName
			})
			serverConfig := tlstest.ServerConfig()
			if role == "client" {
				clientConfig.RootCAs = pool
			} else {
				serverConfig.ClientAuth, serverConfig.ClientCAs = tls.RequireAndVerifyClientCert, pool
			}
			client, server := contextOf(t, clientConfig), contextOf(t, serverConfig)
			shake := func(own bool) error {
				a, b := tlstest.Buffered()
				defer a.Close()
				defer b.Close()
				done := make(chan error, 1)
				if own && role == "server" {
					go func() { done <- server.Server(b).Handshake() }()
				} else {
					go func() { done <- tls.Server(b, serverConfig).Handshake() }()
				}
				var err error
				if own && role == "client" {
					err = client.Client(a, "").Handshake()
				} else {
					err = tls.Client(a, clientConfig).Handshake()
				}
				if role == "client" {
					return err
				}
				if err != nil {
					a.Close()
				}
				return <-done
			}
			test(t, pool, func() error { return shake(false) }, func() error { return shake(true) })
		})
	}
}

// TestChainCacheConstraint: a root's constraint is called as often as by crypto/tls, and its answer may change.
func TestChainCacheConstraint(t *testing.T) {
	roles(t, func(t *testing.T, pool *x509.CertPool, std, own func() error) {
		var deny atomic.Bool
		var asked atomic.Int32
		pool.AddCertWithConstraint(tlstest.CA().Cert, func([]*x509.Certificate) error {
			asked.Add(1)
			if deny.Load() {
				return errors.New("denied")
			}
			return nil
		})
		for name, try := range map[string]func() error{"crypto/tls": std, "ossl": own} {
			deny.Store(false)
			asked.Store(0)
			for range 3 {
				if err := try(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			deny.Store(true)
			err := try()
			if !errors.As(err, new(*tls.CertificateVerificationError)) {
				t.Errorf("%s: %v after the constraint has changed its mind", name, err)
			}
			if n := asked.Load(); n != 4 {
				t.Errorf("%s: the constraint was asked %d times in 4 handshakes", name, n)
			}
		}
	})
}

// TestChainCachePoolGrows: after a certificate was added to a pool, chains are verified again; they are not remembered if that
// certificate has a constraint.
func TestChainCachePoolGrows(t *testing.T) {
	roles(t, func(t *testing.T, pool *x509.CertPool, std, own func() error) {
		pool.AddCert(tlstest.CA().Cert)
		for range 2 {
			if err := own(); err != nil {
				t.Fatal(err)
			}
		}
		// Another certificate of the CA's key and name, so that there are two chains.
		asked := 0
		pool.AddCertWithConstraint(tlstest.NewAuthority("tlstest root", nil, nil).Cert, func([]*x509.Certificate) error {
			asked++
			return nil
		})
		for name, try := range map[string]func() error{"crypto/tls": std, "ossl": own} {
			asked = 0
			for range 3 {
				if err := try(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if asked != 3 {
				t.Errorf("%s: the constraint that was added was asked %d times in 3 handshakes", name, asked)
			}
		}
	})
}

// TestChainCachePoolReplaced: some programs reload roots by *pool = *another, though they shouldn't.
func TestChainCachePoolReplaced(t *testing.T) {
	roles(t, func(t *testing.T, pool *x509.CertPool, std, own func() error) {
		pool.AddCert(tlstest.CA().Cert)
		if err := own(); err != nil {
			t.Fatal(err)
		}
		other := x509.NewCertPool()
		other.AddCert(tlstest.OtherCA().Cert)
		*pool = *other
		for name, try := range map[string]func() error{"crypto/tls": std, "ossl": own} {
			if err := try(); err == nil {
				t.Errorf("%s: accepted after the roots were replaced", name)
			}
		}
	})
}

// TestChainCacheTrustChangesMeanwhile: if the pool changes during a verification, the chain is not remembered.
func TestChainCacheTrustChangesMeanwhile(t *testing.T) {
	chain, now := testChain(t), time.Now()
	pool := x509.NewCertPool()
	cache := newChainCache(4, pool, nil)
	key := chainKey{server: true}
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

// TestChainCacheFallbackRoots: x509.SetFallbackRoots replaces the system's pool with another one, which may have constraints. It
// can be called only once in a process, so the test runs in a process of its own.
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
	config := tlstest.ClientConfig(func(c *tls.Config) { c.RootCAs = nil })
	client, server := contextOf(t, config), contextOf(t, tlstest.ServerConfig())
	if err, _ := shakeContexts(client, server); err != nil {
		t.Fatal(err)
	}
	deny.Store(true)
	if err, _ := shakeContexts(client, server); err == nil {
		t.Error("accepted after the constraint has changed its mind")
	}
}

// TestChainCacheSystemRoots: chains that the system's roots vouch for are remembered, if there are any.
func TestChainCacheSystemRoots(t *testing.T) {
	chain, now := testChain(t), time.Now()
	_, err := x509.SystemCertPool()
	cache := newChainCache(4, nil, nil)
	cache.keep(chainKey{}, chain[:1], [][]*x509.Certificate{chain}, now)
	if hit := cache.hit(chainKey{}, now) != nil; hit != (err == nil) {
		t.Errorf("hit %v, where crypto/x509 has system roots, or says: %v", hit, err)
	}
}

// TestUnverifiedNeedsNoRoots: if chains are not verified, the system's roots aren't loaded.
func TestUnverifiedNeedsNoRoots(t *testing.T) {
	systemTrust.last.Store(nil)
	client := contextOf(t, tlstest.ClientConfig(func(c *tls.Config) {
		c.RootCAs, c.InsecureSkipVerify = nil, true
		c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
	}))
	server := contextOf(t, tlstest.ServerConfig(func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }))
	if clientErr, serverErr := shakeContexts(client, server); clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	if systemTrust.last.Load() != nil {
		t.Error("they were looked at")
	}
}
