//go:build cgo || ossl_nocgo

package revocation

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

const (
	revokedAlert = 44
	unknownAlert = 46
)

func hard(lists *ossl.CRLs, more ...ossl.Option) []ossl.Option {
	return append([]ossl.Option{ossl.WithCRLs(lists), ossl.WithCRLHardFail()}, more...)
}

func soft(lists *ossl.CRLs, more ...ossl.Option) []ossl.Option {
	return append([]ossl.Option{ossl.WithCRLs(lists), ossl.WithCRLSoftFail()}, more...)
}

// valid sets the times of a list, as distances from now.
func valid(from, until time.Duration) func(*x509.RevocationList) {
	return func(l *x509.RevocationList) {
		now := time.Now().Truncate(time.Second)
		l.ThisUpdate, l.NextUpdate = now.Add(from), now.Add(until)
	}
}

// TestVerdicts: the error, the alert and the counts for certificates and lists of each kind, with a
// peer on crypto/tls.
func TestVerdicts(t *testing.T) {
	ca := tlstest.CA()
	twin := tlstest.NewAuthorityOf(tlstest.P384, ca.Cert.Subject.CommonName, nil, nil) // of the same name
	for _, test := range []struct {
		name  string
		lists func(leaf *x509.Certificate) [][]byte
		state ossl.RevocationState // "" if the certificate is good
	}{
		{"good", func(*x509.Certificate) [][]byte { return [][]byte{ca.List(1, nil)} }, ""},
		{"revoked", func(leaf *x509.Certificate) [][]byte { return [][]byte{ca.List(1, nil, leaf)} }, ossl.CertificateRevoked},
		{"revoked, expired", func(leaf *x509.Certificate) [][]byte {
			return [][]byte{ca.List(1, valid(-2*time.Hour, -time.Hour), leaf)}
		}, ossl.CertificateRevoked},
		{"on hold", func(leaf *x509.Certificate) [][]byte {
			return [][]byte{ca.List(1, func(l *x509.RevocationList) { l.RevokedCertificateEntries[0].ReasonCode = 6 }, leaf)}
		}, ossl.CertificateRevoked},
		{"removed from a list", func(leaf *x509.Certificate) [][]byte {
			return [][]byte{ca.List(1, func(l *x509.RevocationList) { l.RevokedCertificateEntries[0].ReasonCode = 8 }, leaf)}
		}, ""},
		{"the newer of two counts", func(leaf *x509.Certificate) [][]byte {
			return [][]byte{ca.List(2, nil), ca.List(1, nil, leaf)}
		}, ""},
		{"the newer of two revokes", func(leaf *x509.Certificate) [][]byte {
			return [][]byte{ca.List(1, nil), ca.List(2, nil, leaf)}
		}, ossl.CertificateRevoked},
		{"missing", func(*x509.Certificate) [][]byte { return [][]byte{tlstest.OtherCA().List(1, nil)} }, ossl.CRLMissing},
		{"another issuer of the same name", func(*x509.Certificate) [][]byte {
			return [][]byte{twin.List(1, nil)}
		}, ossl.CRLUnverified},
		{"a newer list of another issuer of the same name", func(leaf *x509.Certificate) [][]byte {
			return [][]byte{twin.List(9, nil), ca.List(1, nil, leaf)}
		}, ossl.CertificateRevoked},
		{"changed", func(*x509.Certificate) [][]byte {
			list := ca.List(1, nil)
			list[len(list)-5] ^= 1
			return [][]byte{list}
		}, ossl.CRLUnverified},
		{"expired", func(*x509.Certificate) [][]byte { return [][]byte{ca.List(1, valid(-2*time.Hour, -time.Hour))} }, ossl.CRLExpired},
		{"not yet valid", func(*x509.Certificate) [][]byte {
			return [][]byte{ca.List(1, valid(time.Hour, 2*time.Hour))}
		}, ossl.CRLNotYetValid},
	} {
		t.Run(test.name, func(t *testing.T) {
			each(t, func(t *testing.T, version uint16, judged tlstest.Role, path ossl.Option) {
				p := newPair(version, judged, ca)
				lists := test.lists(p.leaf)
				err := loaded(t, lists...).Check(p.leaf, ca.Cert, time.Now())
				var e *ossl.RevocationError
				if test.state == "" && err != nil || test.state != "" && (!errors.As(err, &e) || e.State != test.state) {
					t.Errorf("Check: %v", err)
				}
				client, server, ctx := p.stdEnds(t, hard(loaded(t, lists...), path))
				if test.state == "" {
					tlstest.Visit(t, client, server)
				} else {
					refused, peer := p.errs(t, client, server)
					e := revocationError(t, refused)
					if e.State != test.state || !e.Cert.Equal(p.leaf) {
						t.Errorf("got %q for %x: %v", e.State, e.Cert.SerialNumber, e)
					}
					alert := uint8(unknownAlert)
					if test.state == ossl.CertificateRevoked {
						alert = revokedAlert
						if e.ThisUpdate.IsZero() || e.NextUpdate.IsZero() {
							t.Error("no date of the list")
						}
					}
					p.wantAlert(t, peer, alert)
					if f := ossl.FailureOf(refused); f.Class != ossl.FailureCertificateRevoked {
						t.Errorf("class %q", f.Class)
					}
				}
				var want ossl.RevocationStats
				switch test.state {
				case "":
				case ossl.CertificateRevoked:
					want.Revoked = 1
				default:
					want.HardFails = 1
				}
				if got := ctx.Stats().Revocation; got != want {
					t.Errorf("counted %+v", got)
				}

				var told []*ossl.RevocationEvent
				note := ossl.WithEvents(func(e ossl.Event) {
					if e, ok := e.(*ossl.RevocationEvent); ok {
						told = append(told, e)
					}
				})
				client, server, ctx = p.stdEnds(t, soft(loaded(t, lists...), path, note))
				switch test.state {
				case ossl.CertificateRevoked:
					refused, peer := p.errs(t, client, server)
					revocationError(t, refused)
					p.wantAlert(t, peer, revokedAlert)
				default:
					tlstest.Visit(t, client, server)
				}
				if unknown := test.state != "" && test.state != ossl.CertificateRevoked; unknown != (ctx.Stats().Revocation.SoftFails == 1) ||
					unknown != (len(told) == 1) ||
					unknown && (told[0].Err.State != test.state || told[0].Server != (judged == tlstest.ClientRole)) {
					t.Errorf("soft: counted %+v, told %v", ctx.Stats().Revocation, told)
				}
			})
		})
	}
}

// TestRevokedAfterwards: once a list with a peer's certificate is in place, no path leads in: no
// ticket, no session by ID, no remembered chain. A connection that is open stays open.
func TestRevokedAfterwards(t *testing.T) {
	for _, store := range []string{"ticket", "ID", "cache alone", "remembered chain"} {
		t.Run(store, func(t *testing.T) {
			each(t, func(t *testing.T, version uint16, judged tlstest.Role, path ossl.Option) {
				p := newPair(version, judged, nil)
				s := new(source)
				s.set("ca", tlstest.CA().List(1, nil))
				lists := load(t, s)
				opts, peer := hard(lists, path), []ossl.Option{path}
				switch store {
				case "ID", "cache alone":
					p.server.SessionTicketsDisabled = store == "cache alone"
					cache := ossl.WithSessionCache(session.NewCache(16))
					if judged == tlstest.ClientRole {
						opts = append(opts, cache)
					} else {
						peer = append(peer, cache)
					}
				case "remembered chain":
					p.client.ClientSessionCache, p.server.SessionTicketsDisabled = nil, true
				}
				client, server, ctx := p.ends(t, opts, peer...)
				tlstest.Visit(t, client, server)
				for range 2 {
					if c, _ := tlstest.Visit(t, client, server); c.DidResume == (store == "remembered chain") {
						t.Fatalf("DidResume is %v", c.DidResume)
					}
				}
				if ctx.Stats().ChainCache.Hits == 0 && !ossltest.InFIPS {
					t.Fatal("no chain was remembered")
				}
				a, b := tlstest.Buffered()
				c, srv := client(a), server(b)
				defer c.Close()
				defer srv.Close()
				tlstest.Shake(t, c, srv)

				s.set("ca", tlstest.CA().List(2, nil, p.leaf))
				if err := lists.Reload(); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					refused, peer := p.errs(t, client, server)
					if e := revocationError(t, refused); e.State != ossl.CertificateRevoked || e.Reason != 1 {
						t.Errorf("got %v", e)
					}
					p.wantAlert(t, peer, revokedAlert)
				}
				echo(t, c, srv)
				if n := ctx.Stats().Revocation.Revoked; n < 3 {
					t.Errorf("%d refusals were counted", n)
				}
			})
		})
	}
}

// TestListExpires: a session isn't resumed, and a remembered chain isn't good, after the list's
// nextUpdate, without a change of the lists. A grace delays that.
func TestListExpires(t *testing.T) {
	for _, resumes := range []bool{false, true} {
		each(t, func(t *testing.T, version uint16, judged tlstest.Role, path ossl.Option) {
			p := newPair(version, judged, nil)
			if !resumes {
				p.client.ClientSessionCache, p.server.SessionTicketsDisabled = nil, true
			}
			var ahead atomic.Int64
			p.judge().Time = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			list := tlstest.CA().List(1, valid(-time.Minute, time.Minute))
			client, server, _ := p.ends(t, hard(loaded(t, list), path, ossl.WithCRLGrace(time.Minute)), path)
			at := func(d time.Duration, state ossl.RevocationState) {
				t.Helper()
				ahead.Store(int64(d))
				if state == "" {
					tlstest.Visit(t, client, server)
					return
				}
				refused, peer := p.errs(t, client, server)
				if e := revocationError(t, refused); e.State != state {
					t.Errorf("%v ahead: %v", d, e)
				}
				p.wantAlert(t, peer, unknownAlert)
			}
			at(0, "")
			at(0, "")
			at(90*time.Second, "")
			at(3*time.Minute, ossl.CRLExpired)
			at(0, "")
			at(-90*time.Second, "")
			at(-3*time.Minute, ossl.CRLNotYetValid) // the clock was set back
			at(0, "")
		})
	}
}

// TestReplacedList: a list that revokes a certificate isn't lost if something else takes its place.
func TestReplacedList(t *testing.T) {
	ca := tlstest.CA()
	twin := tlstest.NewAuthorityOf(tlstest.P384, ca.Cert.Subject.CommonName, nil, nil)
	for _, test := range []struct {
		name    string
		list    []byte
		refused bool // by Reload
	}{
		{"garbage", []byte("<html>503</html>"), true},
		{"nothing", []byte{}, true},
		{"a certificate", ca.Cert.Raw, true},
		{"an older list", ca.List(4, nil), true},
		{"a delta list", ca.List(6, func(l *x509.RevocationList) {
			l.ExtraExtensions = append(l.ExtraExtensions, extension(true, []byte{2, 1, 5}, 2, 5, 29, 27))
		}), true},
		{"another issuer's list of the same name", twin.List(6, nil), false},
		{"a list that isn't in force yet", ca.List(6, valid(time.Hour, 2*time.Hour)), true},
		{"another issuer's list", tlstest.OtherCA().List(6, nil), false},
		{"a list for certificates of authorities", ca.List(6, func(l *x509.RevocationList) {
			l.ExtraExtensions = append(l.ExtraExtensions, extension(true, []byte{0x30, 3, 0x82, 1, 0xff}, 2, 5, 29, 28))
		}), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, failure := range []ossl.Option{ossl.WithCRLHardFail(), ossl.WithCRLSoftFail()} {
				p := newPair(tls.VersionTLS13, tlstest.ClientRole, nil)
				s := new(source)
				s.set("ca", ca.List(5, nil, p.leaf))
				lists := load(t, s)
				client, server, _ := p.ends(t, []ossl.Option{ossl.WithCRLs(lists), failure})
				refused := func() {
					t.Helper()
					err, _ := p.errs(t, client, server)
					if e := revocationError(t, err); e.State != ossl.CertificateRevoked {
						t.Error(e)
					}
				}
				refused()
				s.set("ca", test.list)
				var config *ossl.ConfigError
				if err := lists.Reload(); (err != nil) != test.refused || err != nil && !errors.As(err, &config) {
					t.Fatalf("Reload: %v", err)
				}
				refused()
				s.set("ca", ca.List(6, nil, p.leaf))
				if err := lists.Reload(); err != nil {
					t.Fatal("the next good list:", err)
				}
				refused()
				s.set("ca", ca.List(7, nil))
				if err := lists.Reload(); err != nil {
					t.Fatal(err)
				}
				tlstest.Visit(t, client, server)
			}
		})
	}
}

// TestAuthorityWithNewKey: lists by an authority's new key are in force beside those by the old one.
func TestAuthorityWithNewKey(t *testing.T) {
	old, ca := tlstest.NewAuthority("renewed", tlstest.CA(), nil), tlstest.CA().List(1, nil)
	renewed := tlstest.NewAuthorityOf(tlstest.P384, "renewed", tlstest.CA(), nil)
	before := newPair(tls.VersionTLS13, tlstest.ClientRole, old, old.Cert)
	after := newPair(tls.VersionTLS13, tlstest.ClientRole, renewed, renewed.Cert)
	s := new(source)
	s.set("ca", ca)
	s.set("renewed", old.List(7, nil, before.leaf))
	lists := load(t, s)
	check := func() {
		t.Helper()
		client, server, _ := before.ends(t, hard(lists))
		refused, _ := before.errs(t, client, server)
		if e := revocationError(t, refused); e.State != ossl.CertificateRevoked {
			t.Error(e)
		}
	}
	check()
	s.set("renewed", renewed.List(1, nil))
	if err := lists.Reload(); err != nil {
		t.Fatal(err)
	}
	check()
	client, server, _ := after.ends(t, hard(lists))
	tlstest.Visit(t, client, server)
}

// TestRevokedIntermediate: all certificates of a chain except the root are looked up.
func TestRevokedIntermediate(t *testing.T) {
	each(t, func(t *testing.T, version uint16, judged tlstest.Role, path ossl.Option) {
		inter, ca := tlstest.Intermediate(), tlstest.CA()
		p := newPair(version, judged, inter, inter.Cert)
		good := [][]byte{ca.List(1, nil), inter.List(1, nil)}
		client, server, _ := p.stdEnds(t, hard(loaded(t, good...), path))
		tlstest.Visit(t, client, server)
		for i, lists := range [][][]byte{{ca.List(2, nil, inter.Cert), good[1]}, {good[0], inter.List(2, nil, p.leaf)}} {
			client, server, _ := p.stdEnds(t, soft(loaded(t, lists...), path))
			refused, peer := p.errs(t, client, server)
			if e := revocationError(t, refused); !e.Cert.Equal([]*x509.Certificate{inter.Cert, p.leaf}[i]) {
				t.Error(e)
			}
			p.wantAlert(t, peer, revokedAlert)
		}
		for i, list := range good { // the other one is missing
			client, server, _ := p.stdEnds(t, hard(loaded(t, list), path))
			refused, peer := p.errs(t, client, server)
			if e := revocationError(t, refused); e.State != ossl.CRLMissing || !e.Cert.Equal([]*x509.Certificate{p.leaf, inter.Cert}[i]) {
				t.Error(e)
			}
			p.wantAlert(t, peer, unknownAlert)
		}
		root := ca.List(3, nil, ca.Cert) // which is trusted as it is
		client, server, _ = p.stdEnds(t, hard(loaded(t, root, good[1]), path))
		tlstest.Visit(t, client, server)
	})
}

// TestTwoPaths: if a chain to one root is revoked and one to another root isn't, the peer is
// accepted, and callbacks see the good chain alone.
func TestTwoPaths(t *testing.T) {
	each(t, func(t *testing.T, version uint16, judged tlstest.Role, path ossl.Option) {
		one, two := tlstest.NewAuthority("root one", nil, nil), tlstest.NewAuthority("root two", nil, nil)
		byOne := tlstest.NewAuthority("crossed", one, nil)
		byTwo := tlstest.NewAuthority("crossed", two, nil) // the same name and key
		p := newPair(version, judged, byOne, byOne.Cert, byTwo.Cert)
		pool := x509.NewCertPool()
		pool.AddCert(one.Cert)
		pool.AddCert(two.Cert)
		p.trust(pool)
		p.client.ClientSessionCache, p.server.SessionTicketsDisabled = nil, true
		var seen, connected [][]*x509.Certificate
		var order []string
		p.judge().VerifyPeerCertificate = func(_ [][]byte, chains [][]*x509.Certificate) error {
			seen, order = chains, append(order, "peer")
			return nil
		}
		p.judge().VerifyConnection = func(s tls.ConnectionState) error {
			connected, order = s.VerifiedChains, append(order, "connection")
			return nil
		}
		lists := func(ones, twos []*x509.Certificate) *ossl.CRLs {
			return loaded(t, one.List(1, nil, ones...), two.List(1, nil, twos...), byOne.List(1, nil))
		}
		revoked := []*x509.Certificate{byOne.Cert}
		client, server, _ := p.stdEnds(t, hard(lists(nil, nil), path))
		tlstest.Visit(t, client, server)
		if len(seen) != 2 || !slices.Equal(order, []string{"peer", "connection"}) {
			t.Fatalf("%d chains, %v", len(seen), order)
		}
		client, server, _ = p.stdEnds(t, hard(lists(revoked, nil), path))
		for range 2 { // the second time the chains are remembered
			tlstest.Visit(t, client, server)
			for _, chains := range [][][]*x509.Certificate{seen, connected} {
				if len(chains) != 1 || !chains[0][2].Equal(two.Cert) {
					t.Errorf("%d chains", len(chains))
				}
			}
		}
		order = nil
		client, server, _ = p.stdEnds(t, hard(lists(revoked, []*x509.Certificate{byTwo.Cert}), path))
		refused, peer := p.errs(t, client, server)
		revocationError(t, refused)
		p.wantAlert(t, peer, revokedAlert)
		if len(order) > 0 {
			t.Errorf("callbacks were called for a revoked peer: %v", order)
		}
		// One chain is revoked, and for the other there is no list.
		some := loaded(t, one.List(1, nil, byOne.Cert), byOne.List(1, nil))
		client, server, _ = p.stdEnds(t, hard(some, path))
		refused, _ = p.errs(t, client, server)
		revocationError(t, refused)
	})
}

// TestMayNotSignLists: an issuer whose certificate isn't for lists can't clear a certificate, but
// revoke it.
func TestMayNotSignLists(t *testing.T) {
	each(t, func(t *testing.T, version uint16, judged tlstest.Role, path ossl.Option) {
		issuer := tlstest.NewAuthority("without cRLSign", tlstest.CA(), func(c *x509.Certificate) {
			c.KeyUsage = x509.KeyUsageCertSign
		})
		p := newPair(version, judged, issuer, issuer.Cert)
		root := tlstest.CA().List(1, nil)
		client, server, _ := p.stdEnds(t, hard(loaded(t, root, issuer.List(1, nil)), path))
		refused, peer := p.errs(t, client, server)
		if e := revocationError(t, refused); e.State != ossl.CRLUnverified {
			t.Error(e)
		}
		p.wantAlert(t, peer, unknownAlert)
		client, server, _ = p.stdEnds(t, soft(loaded(t, root, issuer.List(1, nil, p.leaf)), path))
		refused, peer = p.errs(t, client, server)
		revocationError(t, refused)
		p.wantAlert(t, peer, revokedAlert)
	})
}

// TestPartitions: a list for a part of its issuer's certificates clears these alone.
func TestPartitions(t *testing.T) {
	const uri = "http://crl.test/1"
	scope := func(value ...byte) func(*x509.RevocationList) {
		return func(l *x509.RevocationList) {
			l.ExtraExtensions = append(l.ExtraExtensions, extension(true, append([]byte{0x30, byte(len(value))}, value...), 2, 5, 29, 28))
		}
	}
	point := func(uri string) []byte {
		n := byte(len(uri))
		return append([]byte{0xa0, n + 4, 0xa0, n + 2, 0x86, n}, uri...)
	}
	users, authorities := []byte{0x81, 1, 0xff}, []byte{0x82, 1, 0xff}
	inter := tlstest.NewAuthority("of a partition", tlstest.CA(), nil)
	p := newPair(tls.VersionTLS13, tlstest.ClientRole, nil)
	cert := tlstest.New(tlstest.Options{Names: []string{tlstest.ClientName}, Issuer: inter, Chain: []*x509.Certificate{inter.Cert},
		Edit: func(c *x509.Certificate) { c.CRLDistributionPoints = []string{"ldap://x", uri} }})
	p.client.Certificates, p.leaf = []tls.Certificate{cert}, cert.Leaf
	for name, test := range map[string]struct {
		list []byte
		good bool
	}{
		"of its URI":                    {inter.List(1, scope(point(uri)...)), true},
		"of its URI, for users":         {inter.List(1, scope(append(point(uri), users...)...)), true},
		"of another URI":                {inter.List(1, scope(point(uri+"0")...)), false},
		"for users":                     {inter.List(1, scope(users...)), true},
		"for authorities":               {inter.List(1, scope(authorities...)), false},
		"of its URI, revoked":           {inter.List(1, scope(point(uri)...), p.leaf), false},
		"of its URI, for authorities":   {inter.List(1, scope(append(point(uri), authorities...)...)), false},
		"all, the certificate names it": {inter.List(1, nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			client, server, _ := p.ends(t, hard(loaded(t, tlstest.CA().List(1, scope(authorities...)), test.list)))
			if test.good {
				tlstest.Visit(t, client, server)
				return
			}
			refused, _ := p.errs(t, client, server)
			if e := revocationError(t, refused); !e.Cert.Equal(p.leaf) {
				t.Error(e)
			}
		})
	}
}

// TestReloadUnderLoad: no handshake fails while lists are replaced.
func TestReloadUnderLoad(t *testing.T) {
	p := newPair(tls.VersionTLS13, tlstest.ClientRole, nil)
	s := new(source)
	s.set("ca", tlstest.CA().List(1, nil))
	lists := load(t, s)
	client, server, ctx := p.ends(t, hard(lists))
	done := make(chan struct{})
	var visits sync.WaitGroup
	for range 2 {
		visits.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, _, err := tlstest.TryVisit(client, server); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 200 {
		s.set("ca", tlstest.CA().List(int64(2+i), nil, tlstest.ServerCert(tlstest.P256).Leaf))
		if err := lists.Reload(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
	}
	close(done)
	visits.Wait()
	if got := ctx.Stats().Revocation; got != (ossl.RevocationStats{}) {
		t.Errorf("counted %+v", got)
	}
}
