//go:build cgo || ossl_nocgo

package resumption

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// TestChosenPolicyIsNotResumedAround makes GetConfigForClient choose a policy for each connection.
// The policies share ticket keys and a cache, but a session made under one policy must not be
// resumed under another.
func TestChosenPolicyIsNotResumedAround(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, store := range []string{"tickets", "cache"} {
			for _, auth := range []tls.ClientAuthType{tls.RequireAnyClientCert, tls.RequireAndVerifyClientCert} {
				t.Run(fmt.Sprintf("%s/%s/%v", tls.VersionName(version), store, auth), func(t *testing.T) {
					cc, sc := tlstest.Resuming(version)
					open := sc.Clone()
					strict := sc.Clone()
					strict.ClientAuth, strict.ClientCAs = auth, tlstest.CA().Pool()
					asks := sc.Clone()
					asks.ClientAuth, asks.ClientCAs = tls.RequestClientCert, tlstest.CA().Pool()
					chosen := open
					sc.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
					var opts []ossl.Option
					if store == "cache" {
						opts = append(opts, ossl.WithSessionCache(session.NewCache(8)))
					}
					client, server := ossltest.Client(t, cc), ossltest.Server(t, sc, opts...)
					tlstest.WantResumed(t, client, server, false)
					tlstest.WantResumed(t, client, server, true)
					for _, from := range []*tls.Config{open, asks} {
						chosen = from
						if _, _, err := tlstest.TryVisit(client, server); err != nil {
							t.Fatal(err)
						}
						tlstest.WantResumed(t, client, server, true)
						chosen = strict
						if c, s, err := tlstest.TryVisit(client, server); err == nil || c.DidResume || s.DidResume {
							t.Errorf("let in: %v", err)
						}
					}
				})
			}
		}
	}
}

// TestInsecureSessionIsVerified shares a cache between two Contexts. One that doesn't verify puts a
// session into it, and one that verifies gets it (CVE-2021-22939, CVE-2025-68121).
func TestInsecureSessionIsVerified(t *testing.T) {
	issuer := tlstest.NewAuthority("ends soon", tlstest.CA(), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(time.Hour) })
	cert := tlstest.New(tlstest.Options{Issuer: issuer, Chain: []*x509.Certificate{issuer.Cert}})
	twin := tlstest.NewAuthorityOf(tlstest.P384, tlstest.CA().Cert.Subject.CommonName, nil, nil)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, strict := range map[string]func(*tls.Config){
			"roots":                  func(c *tls.Config) { c.RootCAs = tlstest.OtherCA().Pool() },
			"roots of the same name": func(c *tls.Config) { c.RootCAs = twin.Pool() },
			"time":                   func(c *tls.Config) { c.Time = func() time.Time { return time.Now().AddDate(200, 0, 0) } },
			"the intermediate's end": func(c *tls.Config) { c.Time = func() time.Time { return time.Now().Add(2 * time.Hour) } },
		} {
			t.Run(tls.VersionName(version)+"/"+name, func(t *testing.T) {
				cc, sc := tlstest.Resuming(version)
				sc.Certificates = []tls.Certificate{cert}
				secure := cc.Clone()
				strict(secure)
				cc.InsecureSkipVerify = true
				server := ossltest.Server(t, sc)
				insecure := ossltest.Client(t, cc)
				tlstest.WantResumed(t, insecure, server, false)
				tlstest.WantResumed(t, insecure, server, true)
				if c, _, err := tlstest.TryVisit(ossltest.Client(t, secure), server); err == nil {
					t.Errorf("accepted; resumed: %v", c.DidResume)
				}
			})
		}
	}
}

// TestResumeAfterHelloRetry resumes sessions of a client with a certificate over a
// HelloRetryRequest, after which the server examines each session a second time.
func TestResumeAfterHelloRetry(t *testing.T) {
	for _, store := range []string{"tickets", "cache"} {
		for _, way := range []string{"std", "ossl"} {
			t.Run(store+"/"+way, func(t *testing.T) {
				cc, sc := tlstest.Resuming(tls.VersionTLS13)
				cc.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
				sc.CurvePreferences = []tls.CurveID{tls.CurveP256}
				cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
				var opts []ossl.Option
				if store == "cache" {
					opts = append(opts, ossl.WithSessionCache(session.NewCache(8)))
				}
				client := ossltest.Client(t, cc)
				if way == "std" {
					client = tlstest.StdClient(cc)
				}
				server := ossltest.Server(t, sc, opts...)
				for i := range 3 {
					_, s := tlstest.Visit(t, client, server)
					if s.DidResume != (i > 0) || len(s.PeerCertificates) != 1 || len(s.VerifiedChains) != 1 {
						t.Fatalf("visit %d: resumed %v, %d certificates, %d chains", i, s.DidResume, len(s.PeerCertificates),
							len(s.VerifiedChains))
					}
				}
			})
		}
	}
}

// TestSingleUse offers the same TLS 1.3 session on many connections at once: the cache gives it to
// one.
func TestSingleUse(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	kept := new(tlstest.OneSlot)
	cc.ClientSessionCache = kept
	client := ossltest.Client(t, cc)
	server := ossltest.Server(t, sc, ossl.WithSessionCache(session.NewCache(64)))
	tlstest.Visit(t, client, server)
	stored, ok := kept.Get("")
	if !ok {
		t.Fatal("no session")
	}
	fixed := cc.Clone()
	fixed.ClientSessionCache = giver{stored}
	thief := ossltest.Client(t, fixed)
	var resumed atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, s, err := tlstest.TryVisit(thief, server)
			if err != nil {
				t.Error(err)
			}
			if s.DidResume {
				resumed.Add(1)
			}
		})
	}
	wg.Wait()
	if n := resumed.Load(); n != 1 {
		t.Errorf("resumed %d times", n)
	}
}

// giver is a cache that always has the same session.
type giver struct{ state *tls.ClientSessionState }

func (g giver) Get(string) (*tls.ClientSessionState, bool) { return g.state, true }
func (g giver) Put(string, *tls.ClientSessionState)        {}

// TestDeferredTakeoverUnderLoad takes clients' connections over while they are read, written and
// closed.
func TestDeferredTakeoverUnderLoad(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	client, server := ossltest.NewContext(t, cc), ossltest.NewContext(t, sc)
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for i := range rounds {
		a, b := tlstest.Loopback()
		c, s := client.Client(a, ""), server.Server(b)
		var wg sync.WaitGroup
		wg.Go(func() { // echoes until the end
			defer s.Close()
			_, _ = io.Copy(s, s)
		})
		const size = 100000
		write := func(n int) {
			buf := make([]byte, 1000)
			for at := 0; at < n; at += len(buf) {
				for k := range buf {
					buf[k] = byte((at + k) * 7)
				}
				if _, err := c.Write(buf); err != nil {
					if i%3 != 2 {
						t.Error(err)
					}
					return
				}
			}
		}
		read := func() {
			buf := make([]byte, 777)
			for at := 0; at < size; {
				n, err := c.Read(buf)
				for k := range n {
					if buf[k] != byte((at+k)*7) {
						t.Errorf("round %d: byte %d was changed", i, at+k)
						return
					}
				}
				if at += n; err != nil {
					if i%3 != 2 {
						t.Error(err)
					}
					return
				}
			}
		}
		wg.Go(func() {
			var inner sync.WaitGroup
			inner.Go(func() { write(size) })
			inner.Go(read)
			inner.Go(func() { _, _ = c.ExportKeyingMaterial("x", nil, 32); _ = c.ConnectionState() })
			if i%3 == 2 {
				inner.Go(func() {
					if c.Handshake() == nil {
						_, _ = c.Write(nil)
					}
					c.Close()
				})
			}
			inner.Wait()
			c.Close()
		})
		wg.Wait()
	}
}
