//go:build cgo

package ossl

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestCertCache(t *testing.T) {
	var c certCache
	der := tlstest.ServerCert(tlstest.P256).Certificate[0]
	given := append([]byte(nil), der...)
	first, err := c.parse(given)
	if err != nil {
		t.Fatal(err)
	}
	clear(given) // the caller's to use again
	want, err := x509.ParseCertificate(der)
	if err != nil || !first.Equal(want) {
		t.Fatalf("got %v, %v", first, err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if again, err := c.parse(der); again != first || err != nil {
					t.Errorf("another certificate, %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	if other, err := c.parse(tlstest.ServerCert(tlstest.RSA2048).Certificate[0]); other.Equal(first) || err != nil {
		t.Errorf("got the first again, %v", err)
	}
	if _, err := c.parse(der[:len(der)-1]); err == nil {
		t.Error("no error")
	}
	runtime.KeepAlive(first)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		c.mu.RLock()
		left := len(c.certs)
		c.mu.RUnlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d certificates that nobody has", left)
		}
	}
}

// TestCertCacheComesAgain parses certificates while those that nobody has any more are forgotten.
func TestCertCacheComesAgain(t *testing.T) {
	var c certCache
	der := tlstest.ServerCert(tlstest.P256).Certificate[0]
	for range 200 {
		cert, err := c.parse(der)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		if again, err := c.parse(der); again != cert || err != nil {
			t.Fatalf("another certificate than the one that is held, %v", err)
		}
	}
}

// oneHandshake runs a handshake and returns the server's certificate as the client has it.
func oneHandshake(t *testing.T, client, server *Context) *x509.Certificate {
	t.Helper()
	a, b := tlstest.Buffered()
	c, s := client.Client(a, ""), server.Server(b)
	defer c.Close()
	defer s.Close()
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	if err := errors.Join(c.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	return c.ConnectionState().PeerCertificates[0]
}

func contextFor(t *testing.T, config *tls.Config, opts ...Option) *Context {
	t.Helper()
	ctx, err := NewContext(config, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// TestCertCacheIsTheContexts meets a peer again, with a callback that spoils what it is given.
func TestCertCacheIsTheContexts(t *testing.T) {
	config := tlstest.ClientConfig()
	config.VerifyPeerCertificate = func(raw [][]byte, _ [][]*x509.Certificate) error {
		clear(raw[0])
		return nil
	}
	server := contextFor(t, tlstest.ServerConfig())
	one, other := contextFor(t, config, WithVerifiedChainCache(0)), contextFor(t, config, WithVerifiedChainCache(0))
	first, again, others := oneHandshake(t, one, server), oneHandshake(t, one, server), oneHandshake(t, other, server)
	if first != again {
		t.Error("parsed twice")
	}
	if first == others {
		t.Error("another Context has the same certificate")
	}
	if der := tlstest.ServerCert(tlstest.P256).Certificate[0]; !bytes.Equal(first.Raw, der) {
		t.Error("a callback changed the certificate by its raw bytes")
	}
}

// TestCertificateKeepsNoContext drops a Context, of which somebody keeps a certificate of a peer, and one of which nobody does.
func TestCertificateKeepsNoContext(t *testing.T) {
	server := contextFor(t, tlstest.ServerConfig())
	for _, test := range []struct {
		name string
		keep bool
		opts []Option
	}{
		{"without", false, nil},
		{"with its certificate", true, nil},
		{"without chain cache", true, []Option{WithVerifiedChainCache(0)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := contextFor(t, tlstest.ClientConfig(), test.opts...)
			cert := oneHandshake(t, client, server)
			if !test.keep {
				cert = nil
			}
			dropped := weak.Make(client)
			client = nil
			for deadline := time.Now().Add(10 * time.Second); dropped.Value() != nil; time.Sleep(time.Millisecond) {
				runtime.GC()
				if time.Now().After(deadline) {
					t.Fatal("the Context lives")
				}
			}
			runtime.KeepAlive(cert)
		})
	}
}
