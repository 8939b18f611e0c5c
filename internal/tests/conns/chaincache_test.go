//go:build cgo || ossl_nocgo

package conns

import (
	"crypto/tls"
	"slices"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestChainCacheKeepsRolesApart: a Context is used in both roles. As a client, which verifies
// nothing, it remembers the chain of a peer that then connects to it as a client.
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

// TestChainCacheGivesOwnSlices: a user's changes to the slices of a state don't reach another
// connection.
func TestChainCacheGivesOwnSlices(t *testing.T) {
	p := ossltest.NewContexts(t, nil)
	for range 3 {
		a, b := tlstest.Buffered()
		go p.Server.Server(b).Handshake()
		c := p.Client.Client(a, "")
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
