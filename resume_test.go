//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// An end makes connections of one role, of ossl or of crypto/tls.
type end func(conn net.Conn) tlstest.Conn

func osslClient(t testing.TB, config *tls.Config, opts ...ossl.Option) end {
	ctx := newContext(t, config, opts...)
	return func(conn net.Conn) tlstest.Conn { return ctx.Client(conn, "") }
}

func osslServer(t testing.TB, config *tls.Config, opts ...ossl.Option) end {
	ctx := newContext(t, config, opts...)
	return func(conn net.Conn) tlstest.Conn { return ctx.Server(conn) }
}

func stdClient(config *tls.Config) end {
	return func(conn net.Conn) tlstest.Conn { return tlstest.Std.Client(conn, config) }
}

func stdServer(config *tls.Config) end {
	return func(conn net.Conn) tlstest.Conn { return tlstest.Std.Server(conn, config) }
}

// visit makes one connection with some data each way and returns what both ends say of it.
func visit(t testing.TB, client, server end) (c, s tls.ConnectionState) {
	t.Helper()
	c, s, err := tryVisit(client, server)
	if err != nil {
		t.Fatal(err)
	}
	if c.DidResume != s.DidResume {
		t.Fatalf("the client says that it resumed: %v, the server: %v", c.DidResume, s.DidResume)
	}
	return c, s
}

func tryVisit(client, server end) (cs, ss tls.ConnectionState, err error) {
	a, b := tlstest.Buffered()
	c, s := client(a), server(b)
	defer c.Close()
	defer s.Close()
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, 40000)
		_, err := io.ReadFull(s, buf)
		if err == nil {
			_, err = s.Write(buf)
		}
		if err != nil {
			s.Close()
		}
		done <- err
	}()
	buf := make([]byte, 40000)
	for i := range buf {
		buf[i] = byte(i)
	}
	if _, err = c.Write(buf); err == nil {
		_, err = io.ReadFull(c, buf)
	}
	if err != nil {
		c.Close()
		<-done
		return cs, ss, err
	}
	if err = <-done; err != nil {
		return cs, ss, err
	}
	for i := range buf {
		if buf[i] != byte(i) {
			return cs, ss, fmt.Errorf("byte %d was changed", i)
		}
	}
	return c.ConnectionState(), s.ConnectionState(), nil
}

// sameState tells where what a resumed connection says differs from the first one's.
func sameState(first, resumed tls.ConnectionState) error {
	switch {
	case len(first.PeerCertificates) != len(resumed.PeerCertificates):
		return fmt.Errorf("%d certificates, then %d", len(first.PeerCertificates), len(resumed.PeerCertificates))
	case len(first.VerifiedChains) != len(resumed.VerifiedChains):
		return fmt.Errorf("%d chains, then %d", len(first.VerifiedChains), len(resumed.VerifiedChains))
	case first.Version != resumed.Version || first.CipherSuite != resumed.CipherSuite:
		return fmt.Errorf("version %x suite %x, then %x, %x", first.Version, first.CipherSuite, resumed.Version, resumed.CipherSuite)
	case first.CurveID != resumed.CurveID:
		return fmt.Errorf("group %v, then %v", first.CurveID, resumed.CurveID)
	case first.ServerName != resumed.ServerName || first.NegotiatedProtocol != resumed.NegotiatedProtocol:
		return fmt.Errorf("%q %q, then %q %q", first.ServerName, first.NegotiatedProtocol, resumed.ServerName,
			resumed.NegotiatedProtocol)
	case string(first.OCSPResponse) != string(resumed.OCSPResponse):
		return fmt.Errorf("OCSP response of %d bytes, then %d", len(first.OCSPResponse), len(resumed.OCSPResponse))
	case len(first.SignedCertificateTimestamps) != len(resumed.SignedCertificateTimestamps):
		return fmt.Errorf("%d SCTs, then %d", len(first.SignedCertificateTimestamps), len(resumed.SignedCertificateTimestamps))
	}
	for i, cert := range first.PeerCertificates {
		if !cert.Equal(resumed.PeerCertificates[i]) {
			return fmt.Errorf("certificate %d differs", i)
		}
	}
	return nil
}

func TestResumption(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, mutual := range []bool{false, true} {
			for _, way := range []string{"ossl-ossl", "ossl-std", "std-ossl"} {
				for _, store := range []string{"tickets", "cache", "cache alone"} {
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
	var client, server end
	switch way {
	case "ossl-ossl":
		client, server = osslClient(t, cc), osslServer(t, sc, opts...)
	case "ossl-std":
		client, server = osslClient(t, cc), stdServer(sc)
	case "std-ossl":
		client, server = stdClient(cc), osslServer(t, sc, opts...)
	}
	// crypto/tls's clients resume TLS 1.2 by ticket only.
	want := !(way == "std-ossl" && store == "cache alone" && version == tls.VersionTLS12)
	c1, s1 := visit(t, client, server)
	if c1.DidResume {
		t.Fatal("the first connection resumed a session")
	}
	for i := range 3 {
		c, s := visit(t, client, server)
		if c.DidResume != want {
			t.Fatalf("visit %d: DidResume is %v", i+2, c.DidResume)
		}
		if err := sameState(c1, c); err != nil {
			t.Errorf("client: %v", err)
		}
		if err := sameState(s1, s); err != nil {
			t.Errorf("server: %v", err)
		}
	}
	byID := store == "cache alone" || store == "cache" && version == tls.VersionTLS13
	if used := cache.Stats().Hits > 0; used != (want && byID) {
		t.Errorf("sessions were found in the cache: %v", used)
	}
}

// TestNoResumption changes something between two connections, after which crypto/tls does not resume.
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
					visit(t, osslClient(t, e.cc), osslServer(t, e.sc, e.opts...))
					if c, _ := visit(t, osslClient(t, e.cc), osslServer(t, e.sc, e.opts...)); !c.DidResume {
						t.Fatal("nothing has changed, and the session was not resumed")
					}
					e.cc, e.sc = e.cc.Clone(), e.sc.Clone()
					change(e)
					c, s, err := tryVisit(osslClient(t, e.cc), osslServer(t, e.sc, e.opts...))
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

// TestClientChainIsVerifiedAgain resumes sessions of a client whose certificate is not good enough any more.
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
				client, server := osslClient(t, cc), osslServer(t, sc, opts...)
				visit(t, client, server)
				if c, _ := visit(t, client, server); !c.DidResume {
					t.Fatal("not resumed")
				}
				leaf, err := x509.ParseCertificate(cc.Certificates[0].Certificate[0])
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				now = leaf.NotAfter.Add(time.Second)
				mu.Unlock()
				if c, s, err := tryVisit(client, server); err == nil || c.DidResume || s.DidResume {
					t.Errorf("%v, DidResume %v", err, c.DidResume)
				}
			})
		}
	}
}

// TestVerifyConnectionOnResumption denies on each side what was accepted before.
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
				client, server := osslClient(t, cc), osslServer(t, sc)
				visit(t, client, server)
				if _, _, err := tryVisit(client, server); err == nil || asked != 2 {
					t.Fatalf("%v after %d calls", err, asked)
				}
			})
		}
	}
}
