//go:build cgo || ossl_nocgo

package ossl

import (
	"crypto/tls"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestOneConversion: handshakes that need the same certificate or configuration at the same time
// convert it once.
func TestOneConversion(t *testing.T) {
	cert := tlstest.ServerCert(tlstest.RSA2048)
	chosen := tlstest.ServerConfig()
	for name, edit := range map[string]func(*tls.Config){
		"certificate": func(c *tls.Config) {
			c.Certificates = nil
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { own := cert; return &own, nil }
		},
		"configuration": func(c *tls.Config) {
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen.Clone(), nil }
		},
	} {
		server := contextOf(t, tlstest.ServerConfig(edit))
		const callers = 16
		var all, begin sync.WaitGroup
		begin.Add(1)
		for range callers {
			all.Go(func() {
				begin.Wait()
				var err error
				if name == "certificate" {
					own := cert
					_, err = server.creds.get(&own, server.rule)
				} else {
					_, err = server.chosen.context(chosen.Clone(), server.opts, server)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		begin.Done()
		all.Wait()
		got := server.Stats()
		if got.CertificateCache.Misses != 1 {
			t.Errorf("%s: %d conversions of a certificate for %d callers", name, got.CertificateCache.Misses, callers)
		}
		if name == "configuration" && got.ConfigurationCache.Misses != 1 {
			t.Errorf("%s: %d were compiled for %d callers", name, got.ConfigurationCache.Misses, callers)
		}
	}
}

// TestFailedConversion: a certificate that can't be converted is an error for each handshake, and
// doesn't block later ones.
func TestFailedConversion(t *testing.T) {
	server := contextOf(t, tlstest.ServerConfig())
	cert := tlstest.ServerCert(tlstest.P256)
	cert.PrivateKey = tlstest.Key(tlstest.P256, "another")
	for range 2 {
		if _, err := server.creds.get(&cert, server.rule); err == nil {
			t.Error("a certificate with another key is accepted")
		}
	}
}

// TestCacheBounds checks that options bound the caches, that evictions are counted, and that 0 turns
// a cache off.
func TestCacheBounds(t *testing.T) {
	for _, o := range []Option{WithCertificateCache(-1), WithConfigurationCache(-1)} {
		if _, err := NewContext(tlstest.ServerConfig(), o); err == nil {
			t.Error("a negative bound is accepted")
		}
	}
	var certs []tls.Certificate
	for range 4 {
		certs = append(certs, tlstest.New(tlstest.Options{}))
	}
	size := slices.MaxFunc(certs, func(a, b tls.Certificate) int { return int(certificateSize(&a) - certificateSize(&b)) })
	for _, c := range []struct {
		room                      int64 // for so many certificates
		conversions, evictions    uint64
		compiled, evictedContexts uint64
	}{
		{4, 4, 0, 4, 0},
		{3, 8, 5, 8, 5}, // in turn, each comes back when it has just left
		{0, 8, 8, 8, 8},
	} {
		i := 0
		server := contextOf(t, tlstest.ServerConfig(func(c *tls.Config) {
			c.Certificates = nil
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { i++; return &certs[i%len(certs)], nil }
		}), WithCertificateCache(c.room*certificateSize(&size)))
		configs := make([]*tls.Config, len(certs))
		for i := range configs {
			configs[i] = &tls.Config{Certificates: certs[i : i+1]}
		}
		j := 0
		chooser := contextOf(t, tlstest.ServerConfig(func(c *tls.Config) {
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { j++; return configs[j%len(configs)], nil }
		}), WithConfigurationCache(4*c.room*configSize(&tls.Config{Certificates: []tls.Certificate{size}}))) // a quarter for newcomers
		if c.room == 3 {
			chooser.boundChosen(3, &tls.Config{Certificates: []tls.Certificate{size}})
		}
		client := contextOf(t, tlstest.ClientConfig(func(c *tls.Config) { c.InsecureSkipVerify = true }))
		before := ProcessStats()
		for range 2 * len(certs) {
			for _, s := range []*Context{server, chooser} {
				if clientErr, serverErr := shakeContexts(client, s); clientErr != nil || serverErr != nil {
					t.Fatal(clientErr, serverErr)
				}
			}
		}
		if got := server.Stats().CertificateCache; got != (ConversionCacheStats{c.conversions, c.evictions}) {
			t.Errorf("room for %d certificates: %+v, want %d and %d", c.room, got, c.conversions, c.evictions)
		}
		if got := chooser.Stats().ConfigurationCache; got != (ConversionCacheStats{c.compiled, c.evictedContexts}) {
			t.Errorf("room for %d configurations: %+v, want %d and %d", c.room, got, c.compiled, c.evictedContexts)
		}
		after := ProcessStats()
		if n := after.ConfigurationCache.Misses - before.ConfigurationCache.Misses; n < c.compiled {
			t.Errorf("the process has compiled %d, want at least %d", n, c.compiled)
		}
		if n := after.CertificateCache.Evictions - before.CertificateCache.Evictions; n < c.evictions {
			t.Errorf("the process has evicted %d, want at least %d", n, c.evictions)
		}
	}
}

// TestUnusedKeyLeaves: a credential leaves the cache, and its key C's memory, when it is idle, even if
// there are no more handshakes. So does a configuration.
func TestUnusedKeyLeaves(t *testing.T) {
	cert := tlstest.ServerCert(tlstest.P256)
	server := contextOf(t, tlstest.ServerConfig())
	server.creds.recent.idle, server.chosen.recent.idle = 10*time.Millisecond, 10*time.Millisecond
	if _, err := server.creds.get(&cert, server.rule); err != nil {
		t.Fatal(err)
	}
	e, err := server.chosen.context(tlstest.ServerConfig(), server.opts, server)
	if err != nil {
		t.Fatal(err)
	}
	e.leave()
	old := func() (n int) {
		server.creds.mu.Lock()
		defer server.creds.mu.Unlock()
		server.chosen.mu.Lock()
		defer server.chosen.mu.Unlock()
		return len(server.creds.recent.entries) + len(server.chosen.recent.entries)
	}
	for deadline := time.Now().Add(20 * time.Second); old() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("idle entries stay")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for e.users.Load() > 0 { // outside of the lock
		runtime.Gosched()
	}
	for _, timer := range []*time.Timer{server.creds.recent.timer, server.chosen.recent.timer} {
		if timer != nil {
			t.Error("a timer runs for an empty cache")
		}
	}
}

// TestCertificateSize compares the sizes that the caches assume with C's heap.
func TestCertificateSize(t *testing.T) {
	if libssl.HeapInUse() == 0 {
		return // the C library isn't glibc
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would free others' memory meanwhile
	rule := contextOf(t, tlstest.ServerConfig()).rule
	var keep []*libssl.Credential
	for _, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048} {
		for _, length := range []int{1, 3} {
			cert := tlstest.ServerCert(kind)
			cert.Certificate = slices.Repeat(cert.Certificate[:1], length)
			measure := func() int64 {
				const n = 200
				before := libssl.HeapInUse()
				for range n {
					cred, err := newCredential(&cert, rule)
					if err != nil {
						t.Fatal(err)
					}
					keep = append(keep, cred)
				}
				return int64(libssl.HeapInUse()-before) / n
			}
			size := certificateSize(&cert)
			real := int64(-1)
			for range 10 { // again if cleanups of earlier tests have freed memory meanwhile
				if real = measure(); real >= size/4 {
					break
				}
			}
			if real > size*5/4 || real < size/4 {
				t.Errorf("%v, %d certificates: %d bytes, assumed %d", kind, length, real, size)
			}
		}
	}
	runtime.KeepAlive(keep)
}

// TestTimerKeepsNoKeys: the timer that drops idle entries doesn't keep a cache that nothing else refers to.
func TestTimerKeepsNoKeys(t *testing.T) {
	if _, err := Library(); err != nil { // loads it
		t.Fatal(err)
	}
	cache := newCredentialCache(&process, defaultCache)
	cert := tlstest.ServerCert(tlstest.P256)
	if _, err := cache.get(&cert, &credentialRule{}); err != nil {
		t.Fatal(err)
	}
	left := weak.Make(cache)
	if cache.recent.timer == nil {
		t.Fatal("there is no timer")
	}
	cache = nil
	for range 100 {
		if runtime.GC(); left.Value() == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the cache is still there")
}
