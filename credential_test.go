//go:build cgo || ossl_nocgo

package ossl

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestRecentMap(t *testing.T) {
	now := time.Now()
	var dropped []string
	evicted := 0
	m := recentMap[int, string]{max: 3, newcomers: 3, idle: time.Hour, drop: func(v string) { dropped = append(dropped, v) },
		evicted: func() { evicted++ }}
	var mu sync.Mutex
	is := func(what string, keys []int, gone ...string) {
		t.Helper()
		mu.Lock()
		m.unlock(&mu) // which drops
		var have []int
		for key := range m.entries {
			have = append(have, key)
		}
		if slices.Sort(have); !slices.Equal(have, keys) || !slices.Equal(dropped, gone) ||
			m.once.order.Len()+m.again.order.Len() != len(keys) || m.once.size+m.again.size != int64(len(keys)) {
			t.Errorf("%s: %v are there, %v in size, %q has gone; want %v and %q", what, have, m.once.size+m.again.size, dropped,
				keys, gone)
		}
		dropped = nil
	}
	if v, ok := m.get(1, now); ok {
		t.Errorf("an empty map has %q", v)
	}
	for i := range 3 {
		m.put(i, fmt.Sprint(i), 1, now)
	}
	is("full", []int{0, 1, 2})
	if v, ok := m.get(0, now); !ok || v != "0" {
		t.Errorf("0 is %q, %v", v, ok)
	}
	m.put(3, "3", 1, now)
	is("one too many: what was used longest ago goes", []int{0, 2, 3}, "1")
	m.put(2, "two", 1, now.Add(time.Minute))
	is("replaced", []int{0, 2, 3}, "2")
	m.get(2, now.Add(time.Hour))
	is("an hour", []int{0, 2, 3})
	m.get(2, now.Add(time.Hour+time.Second))
	is("more than an hour, at a hit", []int{2}, "3", "0")
	m.get(7, now.Add(3*time.Hour))
	is("more than an hour, at a miss", nil, "two")
	m.put(8, "8", 1, now)
	m.put(9, "9", 1, now.Add(2*time.Hour))
	is("more than an hour, at an insertion", []int{9}, "8")

	// The machine has slept, and the clock was set back.
	m.get(9, now)
	m.get(1, tlstest.MoveClocks(now, 2*time.Hour, 0))
	is("two hours by the wall clock", nil, "9")
	m.put(9, "9", 1, now)
	m.get(1, tlstest.MoveClocks(now, -100*time.Hour, 2*time.Hour))
	is("two hours by the monotonic clock", nil, "9")

	if evicted != 1 {
		t.Errorf("%d were evicted, want 1", evicted)
	}
}

// TestRecentMapSizes checks the bounds of sizes, and that values which are used once don't push out
// those that are used again.
func TestRecentMapSizes(t *testing.T) {
	now := time.Now()
	evicted := 0
	m := recentMap[int, int]{max: 100, newcomers: 20, idle: time.Hour, evicted: func() { evicted++ }}
	for i := range 5 { // 80 in all
		m.put(i, i, 16, now.Add(time.Duration(i)))
		m.get(i, now.Add(time.Duration(i)))
	}
	for i := range 1000 {
		m.put(100+i, i, 10, now.Add(time.Minute))
	}
	for i := range 5 {
		if _, ok := m.get(i, now.Add(time.Minute)); !ok {
			t.Errorf("%d, which was used again, has left", i)
		}
	}
	if m.once.size != 20 || m.again.size != 80 || evicted != 998 {
		t.Errorf("the sizes are %d and %d, want 20 and 80; %d were evicted, want 998", m.once.size, m.again.size, evicted)
	}
	m.get(1099, now.Add(time.Minute)) // of those used once, the last
	m.put(5, 5, 15, now.Add(time.Hour))
	if _, ok := m.get(0, now.Add(time.Hour)); ok || m.once.size+m.again.size > 100 {
		t.Errorf("0, which was used longest ago, is %v there; the size is %d", ok, m.once.size+m.again.size)
	}
	m.put(6, 6, 101, now.Add(time.Hour))
	if _, ok := m.get(6, now.Add(time.Hour)); ok {
		t.Error("a value larger than the map is there")
	}
	for i := range m.entries {
		m.put(i, 0, 1, now.Add(time.Hour))
	}
	if m.once.size != int64(len(m.entries)) || m.again.size != 0 {
		t.Errorf("%d values of size 1 have size %d and %d", len(m.entries), m.once.size, m.again.size)
	}
}

// TestReplacedCredentialIsFreed checks that the private key of a replaced certificate is freed
// before the Context.
func TestReplacedCredentialIsFreed(t *testing.T) {
	certs := []tls.Certificate{tlstest.New(tlstest.Options{}), tlstest.New(tlstest.Options{})}
	current := &certs[0]
	server := contextOf(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.Certificates = nil
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current, nil }
	}))
	client := contextOf(t, tlstest.ClientConfig())
	now := time.Now()
	server.creds.now = func() time.Time { return now }
	shake := func(want int) {
		t.Helper()
		if clientErr, serverErr := shakeContexts(client, server); clientErr != nil || serverErr != nil {
			t.Fatal(clientErr, serverErr)
		}
		if n := len(server.creds.recent.entries); n != want {
			t.Fatalf("there are %d credentials, want %d", n, want)
		}
	}
	shake(1)
	old := weakCredential(server.creds)
	shake(1)
	current = &certs[1]
	shake(2) // the old one may come back
	now = now.Add(contextIdle)
	shake(2)
	now = now.Add(time.Second)
	shake(1)
	for i := 0; old.Value() != nil; i++ {
		if i == 100 {
			t.Fatal("the credential that was replaced is still there")
		}
		runtime.GC()
	}
	if cred := weakCredential(server.creds); cred.Value() == nil {
		t.Error("the credential in use is gone")
	}
}

// TestReloadedKey checks that a certificate and a key that are read again for each connection need
// one credential.
func TestReloadedKey(t *testing.T) {
	for _, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048, tlstest.Ed25519} {
		cert := tlstest.ServerCert(kind)
		der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		server := contextOf(t, tlstest.ServerConfig(func(c *tls.Config) {
			c.Certificates = nil
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				again := cert
				again.PrivateKey, err = x509.ParsePKCS8PrivateKey(der)
				return &again, err
			}
		}))
		client := contextOf(t, tlstest.ClientConfig())
		for range 3 {
			if clientErr, serverErr := shakeContexts(client, server); clientErr != nil || serverErr != nil {
				t.Fatal(clientErr, serverErr)
			}
		}
		if n := len(server.creds.recent.entries); n != 1 {
			t.Errorf("%v: there are %d credentials, want 1", kind, n)
		}
	}
}

// weakCredential returns the one credential of a cache.
func weakCredential(c *credentialCache) weak.Pointer[libssl.Credential] {
	return weak.Make(c.recent.oldest().Value.(*recentEntry[credentialKey, *cachedCredential]).value.cred.Load())
}

// TestKeySumKeepsKey: others may be marshalling the key, whose bytes crypto/ecdsa gives to all of them.
func TestKeySumKeepsKey(t *testing.T) {
	for _, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.P384, tlstest.P521, tlstest.RSA2048, tlstest.Ed25519} {
		key := tlstest.Key(kind, "kept")
		before, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		var shared []byte
		if ec, ok := key.(*ecdsa.PrivateKey); ok {
			if shared, err = ec.Bytes(); err != nil {
				t.Fatal(err)
			}
		}
		unchanged := bytes.Clone(shared)
		if _, ok := keySum(key); !ok {
			t.Fatalf("%s: no sum", kind)
		}
		after, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil || !bytes.Equal(after, before) || !bytes.Equal(shared, unchanged) {
			t.Errorf("%s: the key has changed: %v", kind, err)
		}
	}
}

// TestCredentialKey checks that certificates that are sent differently, or sign differently, have
// different credentials.
func TestCredentialKey(t *testing.T) {
	rule := contextOf(t, tlstest.ServerConfig()).rule
	cert := tlstest.ServerCert(tlstest.P256)
	variants := map[string]func(*tls.Certificate, *credentialRule){
		"same": func(*tls.Certificate, *credentialRule) {},
		"chain": func(c *tls.Certificate, _ *credentialRule) {
			c.Certificate = append(slices.Clone(c.Certificate), c.Certificate[0])
		},
		"key":       func(c *tls.Certificate, _ *credentialRule) { c.PrivateKey = tlstest.Key(tlstest.P256, "another") },
		"staple":    func(c *tls.Certificate, _ *credentialRule) { c.OCSPStaple = []byte("staple") },
		"SCTs":      func(c *tls.Certificate, _ *credentialRule) { c.SignedCertificateTimestamps = [][]byte{[]byte("sct")} },
		"algorithm": func(c *tls.Certificate, _ *credentialRule) { c.SupportedSignatureAlgorithms = rule.signatures[:2] },
		"one algorithm": func(c *tls.Certificate, _ *credentialRule) {
			c.SupportedSignatureAlgorithms = rule.signatures[:1]
		},
		"one algorithm by the rule": func(c *tls.Certificate, r *credentialRule) {
			c.SupportedSignatureAlgorithms, r.signatures = rule.signatures[:3], rule.signatures[2:3]
		},
		"FIPS": func(_ *tls.Certificate, r *credentialRule) { r.fips = true },
	}
	seen := map[credentialKey]string{}
	for name, edit := range variants {
		c, r := cert, *rule
		edit(&c, &r)
		key, ok := keyOf(&c, &r)
		if !ok {
			t.Fatalf("%s: no key", name)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[key] = name
		if again, _ := keyOf(&c, &r); again != key {
			t.Errorf("%s has two keys", name)
		}
	}
	c := cert
	for _, c.SupportedSignatureAlgorithms = range [][]tls.SignatureScheme{{}, {1}} {
		if _, ok := keyOf(&c, rule); ok {
			t.Errorf("a certificate that is refused, for %v, has a key", c.SupportedSignatureAlgorithms)
		}
	}
}
