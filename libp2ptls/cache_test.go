package libp2ptls

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ci "github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/sec"
)

// parsed returns certificates as a connection has them: parsed anew each time.
func parsed(certs []tls.Certificate) []*x509.Certificate {
	var list []*x509.Certificate
	for _, der := range certs[0].Certificate {
		list = append(list, must(x509.ParseCertificate(der)))
	}
	return list
}

// TestRememberedPeers: a hit has the same result as a verification, and no other.
func TestRememberedPeers(t *testing.T) {
	who := clientPeer()
	good := func() []tls.Certificate { return certified(who.key, func(*x509.Certificate) {}) }
	t.Run("hit", func(t *testing.T) {
		peers, certs := newPeerCache(2), good()
		first := must(peers.certified(parsed(certs)))
		if second := must(peers.certified(parsed(certs))); second != first || first.id != who.id {
			t.Error("not remembered")
		}
	})
	t.Run("off", func(t *testing.T) {
		peers, certs := newPeerCache(0), good()
		first := must(peers.certified(parsed(certs)))
		if second := must(peers.certified(parsed(certs))); second == first || second.id != who.id || len(peers.entries) != 0 {
			t.Error("remembered")
		}
	})
	t.Run("bounded", func(t *testing.T) {
		peers := newPeerCache(2)
		for range 5 {
			must(peers.certified(parsed(good())))
		}
		if len(peers.entries) != 2 {
			t.Errorf("%d entries", len(peers.entries))
		}
	})
	t.Run("refusals", func(t *testing.T) {
		peers := newPeerCache(2)
		for _, o := range offences()[1:] {
			certs := o.certs(who.key)
			for range 2 {
				if _, err := peers.certified(parsed(certs)); err == nil || !o.reason(err) {
					t.Errorf("%s: %v", o.name, err)
				}
			}
		}
		if len(peers.entries) != 0 {
			t.Errorf("%d refusals are remembered", len(peers.entries))
		}
	})
	t.Run("twice the one that is known", func(t *testing.T) {
		peers, chain := newPeerCache(2), parsed(good())
		must(peers.certified(chain))
		if _, err := peers.certified(append(chain, chain[0])); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("expiry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			peers, certs := newPeerCache(2), good() // valid for an hour
			must(peers.certified(parsed(certs)))
			time.Sleep(59 * time.Minute)
			must(peers.certified(parsed(certs)))
			time.Sleep(2 * time.Minute)
			if _, err := peers.certified(parsed(certs)); err == nil || !strings.Contains(err.Error(), "expired") {
				t.Errorf("known, expired: %v", err)
			}
		})
	})
}

// TestKnownImpostor: another peer presents a known peer's certificate without its key, and a known
// peer is not the expected one. The cache helps neither.
func TestKnownImpostor(t *testing.T) {
	certs := certified(clientPeer().key, func(*x509.Certificate) {})
	server := opensslFlavour.transport(t, serverPeer(), nil)
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			client := f.transport(t, clientPeer(), nil, func(c *tls.Config) { c.Certificates = certs })
			meeting{server: server, client: client, clientWants: serverPeer().id}.both(t)

			a, b := loopback(t)
			c, s := meeting{server: server, client: client, serverWants: thirdPeer().id}.run(t, a, b)
			wantMismatch(t, s.err, thirdPeer(), clientPeer())
			if c.err == nil {
				c.conn.Close()
			}

			stolen := slices.Clone(certs)
			stolen[0].PrivateKey = impostor{stolen[0].PrivateKey.(crypto.Signer).Public(), newCertKey()}
			thief := f.transport(t, identityOf(newKey(ci.Ed25519)), nil, func(c *tls.Config) { c.Certificates = stolen })
			a, b = loopback(t)
			c, s = meeting{server: server, client: thief}.run(t, a, b)
			if s.err == nil || !invalidSignature(s.err) {
				t.Errorf("%v", s.err)
			}
			var mismatch sec.ErrPeerIDMismatch
			if errors.As(s.err, &mismatch) {
				t.Errorf("%v", s.err)
			}
			if c.err == nil {
				c.conn.Close()
			}
		})
	}
}

// TestAllocations counts the allocations of a handshake on both sides, which are the same on every
// machine.
func TestAllocations(t *testing.T) {
	count := func(p pairing) float64 {
		m := p.meeting(t)
		return testing.AllocsPerRun(20, func() {
			a, b := loopback(t)
			c, s := m.run(t, a, b)
			if c.err != nil || s.err != nil {
				t.Fatal(c.err, s.err)
			}
			c.conn.Close()
			s.conn.Close()
		})
	}
	std, openssl := count(pairings[0]), count(pairings[3])
	t.Logf("%.0f allocations, TCP's included; go-libp2p's transport: %.0f", openssl, std)
	if openssl > std/3 {
		t.Errorf("%.0f allocations, want at most a third of go-libp2p's %.0f", openssl, std)
	}
}
