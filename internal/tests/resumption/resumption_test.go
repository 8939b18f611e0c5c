//go:build cgo || ossl_nocgo

package resumption

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

func TestResumption(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, mutual := range []bool{false, true} {
			for _, way := range []string{"ossl-ossl", "ossl-std", "std-ossl"} {
				for _, store := range []string{"tickets", "cache", "cache for TLS 1.2", "cache alone"} {
					if store != "tickets" && way == "ossl-std" {
						continue // crypto/tls has no cache
					}
					name := fmt.Sprintf("%s/%s/mutual=%v/%s", tls.VersionName(version), way, mutual, store)
					t.Run(name, func(t *testing.T) { testResumption(t, version, mutual, way, store) })
				}
			}
		}
	}
}

func testResumption(t *testing.T, version uint16, mutual bool, way, store string) {
	cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig()
	cc.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	cc.SessionTicketsDisabled, sc.SessionTicketsDisabled = false, store == "cache alone"
	cc.MaxVersion, sc.MaxVersion = version, version
	cc.NextProtos, sc.NextProtos = []string{"one", "two"}, []string{"two"}
	if mutual {
		cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
		sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
	}
	var opts []ossl.Option
	cache := session.NewCache(16)
	if store != "tickets" {
		opts = append(opts, ossl.WithSessionCache(cache))
	}
	if store == "cache for TLS 1.2" {
		opts = append(opts, ossl.WithTLS13Tickets())
	}
	var client, server tlstest.End
	switch way {
	case "ossl-ossl":
		client, server = ossltest.Client(t, cc), ossltest.Server(t, sc, opts...)
	case "ossl-std":
		client, server = ossltest.Client(t, cc), tlstest.StdServer(sc)
	case "std-ossl":
		client, server = tlstest.StdClient(cc), ossltest.Server(t, sc, opts...)
	}
	// crypto/tls's clients resume TLS 1.2 by ticket only.
	want := !(way == "std-ossl" && store == "cache alone" && version == tls.VersionTLS12)
	c1, s1 := tlstest.Visit(t, client, server)
	if c1.DidResume {
		t.Fatal("the first connection resumed a session")
	}
	for i := range 3 {
		c, s := tlstest.Visit(t, client, server)
		if c.DidResume != want {
			t.Fatalf("visit %d: DidResume is %v", i+2, c.DidResume)
		}
		if err := tlstest.SameState(c1, c); err != nil {
			t.Errorf("client: %v", err)
		}
		if err := tlstest.SameState(s1, s); err != nil {
			t.Errorf("server: %v", err)
		}
	}
	byID := store == "cache alone" || store == "cache" && version == tls.VersionTLS13
	if entries := cache.Stats().Entries; entries > 0 && store == "cache for TLS 1.2" {
		t.Errorf("%d sessions are in the cache", entries)
	}
	if used := cache.Stats().Hits > 0; used != (want && byID) {
		t.Errorf("sessions were found in the cache: %v", used)
	}
}

// TestNoResumption changes something between two connections, after which crypto/tls does not
// resume.
func TestNoResumption(t *testing.T) {
	type ends struct {
		cc, sc *tls.Config
		opts   []ossl.Option
	}
	for name, change := range map[string]func(e *ends){
		"roots":             func(e *ends) { e.cc.RootCAs = tlstest.OtherCA().Pool() },
		"client auth":       func(e *ends) { e.sc.ClientAuth = tls.RequestClientCert },
		"certificate asked": func(e *ends) { e.sc.ClientAuth, e.sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool() },
		"protocol":          func(e *ends) { e.sc.NextProtos = []string{"one"} },
		"time":              func(e *ends) { e.cc.Time = func() time.Time { return time.Now().Add(200 * 24 * 365 * time.Hour) } },
		"server's sessions": func(e *ends) { e.opts = nil; e.sc.SessionTicketsDisabled = true },
		"client's sessions": func(e *ends) { e.cc.SessionTicketsDisabled = true },
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, store := range []string{"tickets", "cache"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, tls.VersionName(version), store), func(t *testing.T) {
					ring := session.NewRotatingRing(0, 0)
					e := &ends{cc: tlstest.ClientConfig(), sc: tlstest.ServerConfig()}
					e.cc.ClientSessionCache = tls.NewLRUClientSessionCache(0)
					e.cc.SessionTicketsDisabled, e.sc.SessionTicketsDisabled = false, store == "cache"
					e.cc.MaxVersion = version
					e.cc.NextProtos, e.sc.NextProtos = []string{"one", "two"}, []string{"two", "one"}
					e.cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
					e.opts = []ossl.Option{ossl.WithTicketKeys(ring)}
					if store == "cache" {
						e.opts = []ossl.Option{ossl.WithSessionCache(session.NewCache(16))}
					}
					tlstest.Visit(t, ossltest.Client(t, e.cc), ossltest.Server(t, e.sc, e.opts...))
					if c, _ := tlstest.Visit(t, ossltest.Client(t, e.cc), ossltest.Server(t, e.sc, e.opts...)); !c.DidResume {
						t.Fatal("nothing has changed, and the session was not resumed")
					}
					e.cc, e.sc = e.cc.Clone(), e.sc.Clone()
					change(e)
					c, s, err := tlstest.TryVisit(ossltest.Client(t, e.cc), ossltest.Server(t, e.sc, e.opts...))
					if c.DidResume || s.DidResume {
						t.Error("resumed")
					}
					if fails := name == "roots" || name == "time"; (err != nil) != fails {
						t.Errorf("%v", err)
					}
				})
			}
		}
	}
}

// TestClientChainIsVerifiedAgain resumes sessions of a client whose certificate is no longer good
// enough.
func TestClientChainIsVerifiedAgain(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, cached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/cache=%v", tls.VersionName(version), cached), func(t *testing.T) {
				now := time.Now()
				var mu sync.Mutex
				cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig()
				cc.ClientSessionCache = tls.NewLRUClientSessionCache(0)
				cc.SessionTicketsDisabled, sc.SessionTicketsDisabled = false, false
				cc.MaxVersion = version
				cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
				sc.Time = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
				opts := []ossl.Option{ossl.WithVerifiedChainCache(0)}
				if cached {
					sc.SessionTicketsDisabled = true
					opts = append(opts, ossl.WithSessionCache(session.NewCache(16)))
				}
				client, server := ossltest.Client(t, cc), ossltest.Server(t, sc, opts...)
				tlstest.Visit(t, client, server)
				if c, _ := tlstest.Visit(t, client, server); !c.DidResume {
					t.Fatal("not resumed")
				}
				leaf, err := x509.ParseCertificate(cc.Certificates[0].Certificate[0])
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				now = leaf.NotAfter.Add(time.Second)
				mu.Unlock()
				if c, s, err := tlstest.TryVisit(client, server); err == nil || c.DidResume || s.DidResume {
					t.Errorf("%v, DidResume %v", err, c.DidResume)
				}
			})
		}
	}
}

// TestAuthorityOfTheSameName changes a server's authority to another with the same name
// (CVE-2025-68121).
func TestAuthorityOfTheSameName(t *testing.T) {
	twin := tlstest.NewAuthorityOf(tlstest.P384, tlstest.CA().Cert.Subject.CommonName, nil, nil)
	for _, version := range tlstest.Versions {
		for store, opts := range map[string][]ossl.Option{"tickets": nil, "cache": {ossl.WithSessionCache(session.NewCache(8))}} {
			t.Run(tls.VersionName(version)+"/"+store, func(t *testing.T) {
				cc, sc := tlstest.Resuming(version)
				cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
				chosen, outer := sc, sc.Clone()
				outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
				client, server := ossltest.Client(t, cc), ossltest.Server(t, outer, opts...)
				tlstest.WantResumed(t, client, server, false)
				tlstest.WantResumed(t, client, server, true)
				chosen = sc.Clone()
				chosen.ClientCAs = twin.Pool()
				if c, s, err := tlstest.TryVisit(client, server); err == nil || c.DidResume || s.DidResume {
					t.Errorf("let in: %v", err)
				}
			})
		}
	}
}

// TestVerifyConnectionOnResumption refuses on each side a peer that was accepted before.
func TestVerifyConnectionOnResumption(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, role := range []string{"client", "server", "server with certificate"} {
			t.Run(tls.VersionName(version)+"/"+role, func(t *testing.T) {
				cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig()
				cc.ClientSessionCache = tls.NewLRUClientSessionCache(0)
				cc.SessionTicketsDisabled, sc.SessionTicketsDisabled = false, false
				cc.MaxVersion = version
				if role == "server with certificate" {
					cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
					sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
				}
				asked, denied := 0, fmt.Errorf("denied")
				verify := func(state tls.ConnectionState) error {
					asked++
					if state.DidResume != (asked == 2) {
						return fmt.Errorf("call %d: DidResume is %v", asked, state.DidResume)
					}
					if state.DidResume {
						return denied
					}
					return nil
				}
				if role == "client" {
					cc.VerifyConnection = verify
				} else {
					sc.VerifyConnection = verify
				}
				client, server := ossltest.Client(t, cc), ossltest.Server(t, sc)
				tlstest.Visit(t, client, server)
				if _, _, err := tlstest.TryVisit(client, server); err == nil || asked != 2 {
					t.Fatalf("%v after %d calls", err, asked)
				}
			})
		}
	}
}
