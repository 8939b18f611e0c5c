package ossl_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// What a review found once, and how it was found.

// TestChainCacheKeepsRolesApart: a Context in both roles remembers as a client, which verifies nothing, the chain of a peer that then
// comes back as a client of its own.
func TestChainCacheKeepsRolesApart(t *testing.T) {
	both, err := ossl.NewContext(&tls.Config{
		Certificates:       []tls.Certificate{tlstest.ServerCert(tlstest.P256)},
		InsecureSkipVerify: true,
		ClientAuth:         tls.RequireAndVerifyClientCert,
		ClientCAs:          tlstest.CA().Pool(),
	})
	if err != nil {
		t.Fatal(err)
	}
	intruder := tlstest.SpecimenNamed("unknown CA").Cert(tlstest.ClientRole)
	attacker := &tls.Config{Certificates: []tls.Certificate{intruder}, InsecureSkipVerify: true, SessionTicketsDisabled: true}

	a, b := tlstest.Buffered()
	go tls.Server(b, attacker).Handshake()
	if err := both.Client(a, "").Handshake(); err != nil {
		t.Fatal(err)
	}
	a, b = tlstest.Buffered()
	go tls.Client(a, attacker).Handshake()
	if err := both.Server(b).Handshake(); err == nil {
		t.Fatal("a client's chain that nobody verified is accepted")
	}
}

// TestChainCacheGivesOwnSlices: what a user does to a state's slices is not another connection's.
func TestChainCacheGivesOwnSlices(t *testing.T) {
	p := contexts(t, nil)
	for range 3 {
		a, b := tlstest.Buffered()
		go p.server.Server(b).Handshake()
		c := p.client.Client(a, "")
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		s := c.ConnectionState()
		if s.PeerCertificates[0].IsCA || s.VerifiedChains[0][0].IsCA {
			t.Fatal("changed by an earlier connection's user")
		}
		slices.Reverse(s.VerifiedChains[0])
		s.PeerCertificates[0] = tlstest.CA().Cert
	}
}

// TestHelloContext: the context that callbacks get is the handshake's, and ends with it.
func TestHelloContext(t *testing.T) {
	var seen context.Context
	check := func(hello *tls.ClientHelloInfo) {
		seen = hello.Context()
		if err := seen.Err(); err != nil {
			t.Errorf("during the handshake: %v", err)
		}
	}
	p := contexts(t, func(_, s *tls.Config) {
		s.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { check(hello); return nil, nil }
		s.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { check(hello); return nil, nil }
	})
	a, b := tlstest.Buffered()
	go p.client.Client(a, "").Handshake()
	if err := p.server.Server(b).Handshake(); err != nil {
		t.Fatal(err)
	}
	if seen == nil || seen.Err() == nil {
		t.Error("the context outlives the handshake")
	}
}

// TestCloseInsideClientCertificate: Close frees the connection while a callback decides.
func TestCloseInsideClientCertificate(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		var c *ossl.Conn
		denied := errors.New("denied")
		p := contexts(t, func(client, s *tls.Config) {
			client.MaxVersion = version
			s.ClientAuth = tls.RequireAnyClientCert
			client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				c.Close()
				return nil, denied
			}
		})
		a, b := tlstest.Buffered()
		go p.server.Server(b).Handshake()
		c = p.client.Client(a, "")
		if err := c.Handshake(); err != denied {
			t.Errorf("got %v", err)
		}
		if !c.Freed() {
			t.Error("C memory is kept")
		}
	}
}

// TestCloseNotifyDuringHandshake ends it, as in crypto/tls.
func TestCloseNotifyDuringHandshake(t *testing.T) {
	p := contexts(t, nil)
	a, b := tlstest.Buffered()
	go func() {
		io.ReadFull(b, make([]byte, 5))
		b.Write([]byte{21, 3, 3, 0, 2, 1, 0})
	}()
	done := make(chan error, 1)
	go func() { done <- p.client.Client(a, "").Handshake() }()
	select {
	case err := <-done:
		if err != io.EOF {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on waiting")
	}
}

// TestAfterPanic: a callback's panic ends the connection for good, and nothing hangs afterwards.
func TestAfterPanic(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		p := contexts(t, func(c, _ *tls.Config) {
			c.MaxVersion = version
			c.VerifyConnection = func(tls.ConnectionState) error { panic("boom") }
		})
		a, b := tlstest.Buffered()
		go p.server.Server(b).Handshake()
		c := p.client.Client(a, "")
		func() {
			defer func() { recover() }()
			c.Handshake()
			t.Error("no panic")
		}()
		if err := c.Handshake(); err == nil {
			t.Error("a second handshake succeeds")
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("Read succeeds")
		}
		if !c.Freed() {
			t.Error("C memory is kept")
		}
	}
}

func TestNilKeys(t *testing.T) {
	for _, cert := range []tls.Certificate{
		{},
		{Certificate: tlstest.ServerCert(tlstest.P256).Certificate},
		{Certificate: tlstest.ServerCert(tlstest.P256).Certificate, PrivateKey: (*nilSigner)(nil)},
		{Certificate: [][]byte{{}}},
	} {
		var e *ossl.ConfigError
		if _, err := ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{cert}}); !errors.As(err, &e) {
			t.Errorf("got %v", err)
		}
	}
}

type nilSigner struct{ slowSigner }
