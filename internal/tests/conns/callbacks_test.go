//go:build cgo || ossl_nocgo

package conns

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// TestGetConfigForClient checks that a connection uses the chosen Context: its certificate, its
// protocols, its verification.
func TestGetConfigForClient(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		chosen := tlstest.ServerConfig(func(c *tls.Config) {
			c.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.RSA2048)}
			c.NextProtos = []string{"chosen"}
			c.ClientAuth = tls.RequireAndVerifyClientCert
			c.ClientCAs = tlstest.CA().Pool()
			c.MaxVersion = version
		})
		client, server := ossltest.Connected(t, tlstest.Loopback, func(c, s *tls.Config) {
			c.NextProtos = []string{"chosen"}
			c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			s.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				if hello.ServerName != tlstest.ServerName || hello.Conn == nil || hello.Context() == nil {
					t.Errorf("hello: %+v", hello)
				}
				return chosen, nil
			}
		})
		if s := client.ConnectionState(); s.Version != version || s.NegotiatedProtocol != "chosen" ||
			s.PeerCertificates[0].PublicKeyAlgorithm != x509.RSA {
			t.Errorf("client: %+v", s)
		}
		if s := server.ConnectionState(); len(s.PeerCertificates) == 0 || len(s.VerifiedChains) == 0 {
			t.Errorf("server: %+v", s)
		}
	}
}

// TestGetClientCertificateContext: the info's Context method works.
func TestGetClientCertificateContext(t *testing.T) {
	type key struct{}
	p := ossltest.NewContexts(t, func(c, s *tls.Config) {
		s.ClientAuth = tls.RequireAnyClientCert
		c.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if info.Context().Value(key{}) != "value" {
				t.Error("not the handshake's context")
			}
			cert := tlstest.ClientCert(tlstest.Ed25519)
			return &cert, info.SupportsCertificate(&cert)
		}
	})
	a, b := tlstest.Buffered()
	go p.Server.Server(b).Handshake()
	if err := p.Client.Client(a, "").HandshakeContext(context.WithValue(t.Context(), key{}, "value")); err != nil {
		t.Fatal(err)
	}
}

// TestPanicInCallback checks that a callback's panic reaches the goroutine of the handshake, as in
// crypto/tls, from every callback that libssl calls.
func TestPanicInCallback(t *testing.T) {
	boom := func() { panic("boom") }
	for name, edit := range map[string]func(c, s *tls.Config){
		"client VerifyConnection": func(c, _ *tls.Config) {
			c.VerifyConnection = func(tls.ConnectionState) error { boom(); return nil }
		},
		"server VerifyConnection": func(_, s *tls.Config) {
			s.VerifyConnection = func(tls.ConnectionState) error { boom(); return nil }
		},
		"server VerifyPeerCertificate": func(c, s *tls.Config) {
			s.ClientAuth = tls.RequireAnyClientCert
			c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			s.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { boom(); return nil }
		},
		"server GetCertificate": func(_, s *tls.Config) {
			s.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { boom(); return nil, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := ossltest.NewContexts(t, edit)
			a, b := tlstest.Buffered()
			panics := make(chan any, 2)
			run := func(c *ossl.Conn) {
				defer func() { panics <- recover(); c.Close() }()
				if err := c.Handshake(); err == nil {
					_, err = c.Read(make([]byte, 1))
					if err == nil {
						t.Error("the handshake succeeds")
					}
				}
			}
			go run(p.Client.Client(a, ""))
			go run(p.Server.Server(b))
			if x, y := <-panics, <-panics; x != "boom" && y != "boom" {
				t.Errorf("panics: %v, %v", x, y)
			}
		})
	}
}

// TestChosenWhileAsked asks a connection for its FIPS mode while its configuration is being chosen.
func TestChosenWhileAsked(t *testing.T) {
	refused := tlstest.ServerConfig(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10 })
	for name, chosen := range map[string]*tls.Config{"used": tlstest.ServerConfig(), "refused": refused} {
		t.Run(name, func(t *testing.T) {
			a, b := tlstest.Buffered()
			asking, done := make(chan struct{}), make(chan struct{})
			var server *ossl.Conn
			server = ossltest.NewContext(t, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				go func() {
					defer close(done)
					for i := range 1000 {
						server.FIPS()
						if i == 0 {
							close(asking)
						}
					}
				}()
				<-asking
				return chosen, nil
			}}).Server(b)
			defer server.Close()
			client := tls.Client(a, tlstest.ClientConfig())
			ended := make(chan error, 1)
			go func() { ended <- client.Handshake() }()
			err := server.Handshake()
			if (err == nil) != (name == "used") {
				t.Error(err)
			}
			server.Close()
			<-ended
			<-done
		})
	}
}

// TestCallbacksAsk makes each callback of a handshake ask its connection for its FIPS mode, as a
// callback that insists on FIPS mode does.
func TestCallbacksAsk(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			t.Run(fmt.Sprintf("%s/%s", tlstest.VersionName(version), role), func(t *testing.T) {
				var under *ossl.Conn
				asked := map[string]bool{}
				ask := func(from string) {
					asked[from] = true
					if fips := under.FIPS() != nil; fips != ossltest.InFIPS {
						t.Errorf("from %s: FIPS mode is %t", from, fips)
					}
				}
				client := tlstest.ClientConfig(tlstest.Only(version))
				server := tlstest.ServerConfig(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert))
				config := client
				want := []string{"GetClientCertificate", "VerifyPeerCertificate", "VerifyConnection", "WithVerification"}
				if role == tlstest.ServerRole {
					config = server
					want = []string{"GetConfigForClient", "GetCertificate", "VerifyPeerCertificate", "VerifyConnection", "WithVerification"}
				}
				config.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
					ask("VerifyPeerCertificate")
					return nil
				}
				config.VerifyConnection = func(tls.ConnectionState) error {
					ask("VerifyConnection")
					return nil
				}
				own := ossl.WithVerification(func(tls.ConnectionState) error {
					ask("WithVerification")
					return nil
				})
				cert := tlstest.ClientCert(tlstest.P256)
				client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if role == tlstest.ClientRole {
						ask("GetClientCertificate")
					}
					return &cert, nil
				}
				a, b := tlstest.Buffered()
				defer a.Close()
				defer b.Close()
				var peer tlstest.Conn
				if role == tlstest.ClientRole {
					under, peer = ossltest.NewContext(t, client).Client(a, "", own), tlstest.Std.Server(b, server)
				} else {
					served := server.Certificates[0]
					server.Certificates = nil
					server.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
						ask("GetCertificate")
						return &served, nil
					}
					server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
						ask("GetConfigForClient")
						return nil, nil
					}
					under, peer = ossltest.NewContext(t, server).Server(b, own), tlstest.Std.Client(a, client)
				}
				go peer.Handshake()
				done := make(chan error, 1)
				go func() { done <- under.Handshake() }()
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(tlstest.Patience):
					t.Fatal("the handshake hangs")
				}
				for _, from := range want {
					if !asked[from] {
						t.Errorf("%s was not called", from)
					}
				}
			})
		}
	}
}

// TestSignerOrCallbackMayNotReturn: a function that libssl has called may exit its goroutine, so
// that libssl never continues. By then the thread may keep nothing of the connection, because it
// serves other connections when the connection is freed.
func TestSignerOrCallbackMayNotReturn(t *testing.T) {
	asked := map[string]bool{}
	look := func(where string) {
		asked[where] = true
		if libssl.Occupied() {
			t.Errorf("%s: the thread still is in the handshake", where)
		}
	}
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
	sc.ClientAuth = tls.RequireAnyClientCert
	sc.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
	key := sc.Certificates[0].PrivateKey.(crypto.Signer)
	sc.Certificates[0].PrivateKey = &tlstest.LookingSigner{Signer: key, Before: func() { look("Sign") }}
	sc.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
		look("VerifyPeerCertificate")
		return nil
	}
	sc.Time = func() time.Time { // by which a session's certificates are judged
		if asked["VerifyPeerCertificate"] {
			look("Time")
		}
		return time.Now()
	}
	client, server := ossltest.NewContext(t, cc), ossltest.NewContext(t, sc)
	for i := range 2 {
		c, s := tlstest.Visit(t, func(conn net.Conn) tlstest.Conn { return client.Client(conn, "") },
			func(conn net.Conn) tlstest.Conn { return server.Server(conn) })
		if resumed := i == 1; c.DidResume != resumed || s.DidResume != resumed {
			t.Errorf("visit %d: resumed %t, %t", i, c.DidResume, s.DidResume)
		}
	}
	if len(asked) != 3 {
		t.Errorf("asked: %v", asked)
	}
}

// TestHelloContext: callbacks get the handshake's context, which is canceled when the handshake
// returns.
func TestHelloContext(t *testing.T) {
	var seen context.Context
	check := func(hello *tls.ClientHelloInfo) {
		seen = hello.Context()
		if err := seen.Err(); err != nil {
			t.Errorf("during the handshake: %v", err)
		}
	}
	p := ossltest.NewContexts(t, func(_, s *tls.Config) {
		s.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { check(hello); return nil, nil }
		s.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { check(hello); return nil, nil }
	})
	a, b := tlstest.Buffered()
	go p.Client.Client(a, "").Handshake()
	if err := p.Server.Server(b).Handshake(); err != nil {
		t.Fatal(err)
	}
	if seen == nil || seen.Err() == nil {
		t.Error("the context outlives the handshake")
	}
}

// TestCallbacksUseTheirContext: many callbacks at once may run handshakes with the Context that
// calls them.
func TestCallbacksUseTheirContext(t *testing.T) {
	const handshakes = 140
	for _, impl := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
		t.Run(impl.Name(), func(t *testing.T) {
			if testing.Short() && impl == tlstest.Std {
				t.Skip("crypto/tls alone: only without -short")
			}
			var barrier, all sync.WaitGroup
			barrier.Add(handshakes)
			var config *tls.Config
			config = tlstest.ServerConfig(func(c *tls.Config) {
				c.ServerName, c.RootCAs = tlstest.ServerName, tlstest.ClientConfig().RootCAs
				c.ClientAuth = tls.RequireAnyClientCert
				c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					cert := tlstest.ClientCert(tlstest.P256)
					return &cert, nil
				}
				c.VerifyConnection = func(s tls.ConnectionState) error {
					if s.PeerCertificates[0].Subject.CommonName != tlstest.ClientName {
						return nil
					}
					barrier.Done()
					barrier.Wait() // until all are here
					a, b := tlstest.Buffered()
					all.Go(func() { tlstest.Std.Server(b, tlstest.ServerConfig()).Handshake() })
					return impl.Client(a, config).HandshakeContext(t.Context())
				}
			})
			clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
				c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			})
			var failed atomic.Pointer[error]
			for range handshakes {
				a, b := tlstest.Buffered()
				all.Go(func() { tlstest.Std.Client(a, clientConfig).Handshake() })
				all.Go(func() {
					if err := impl.Server(b, config).Handshake(); err != nil {
						failed.Store(&err)
					}
				})
			}
			all.Wait()
			if err := failed.Load(); err != nil {
				t.Error(*err)
			}
		})
	}
}

// TestKeySignsInCallback: a callback signs with the key of the server that calls it. The key makes
// one signature at a time.
func TestKeySignsInCallback(t *testing.T) {
	cert := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, keys.WithMaxSigners(1))
	server := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.Certificates = []tls.Certificate{cert}
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
			_, err := cert.PrivateKey.(*keys.Key).Sign(nil, make([]byte, 32), crypto.SHA256)
			return err
		}
	}))
	a, b := tlstest.Buffered()
	go tls.Client(a, tlstest.ClientConfig(func(c *tls.Config) {
		c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
	})).Handshake()
	if err := server.Server(b).Handshake(); err != nil {
		t.Error(err)
	}
}

// TestKeyIsFreeDuringCallbacks: while a slow callback verifies a client's certificate, its
// handshake doesn't block the server's key for others.
func TestKeyIsFreeDuringCallbacks(t *testing.T) {
	const turns = 3
	cert := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, keys.WithMaxSigners(turns))
	inside, release := make(chan struct{}), make(chan struct{})
	slow := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.Certificates = []tls.Certificate{cert}
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
			inside <- struct{}{}
			<-release
			return nil
		}
	}))
	other := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) { c.Certificates = []tls.Certificate{cert} }))
	config := tlstest.ClientConfig(func(c *tls.Config) { c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)} })
	var all sync.WaitGroup
	begin := func(ctx *ossl.Context) chan error {
		a, b := tlstest.Buffered()
		done := make(chan error, 1)
		all.Go(func() { tls.Client(a, config).Handshake() })
		all.Go(func() { done <- ctx.Server(b).Handshake() })
		return done
	}
	for range 2 * turns {
		begin(slow)
		<-inside
	}
	if err := <-begin(other); err != nil {
		t.Error(err)
	}
	close(release)
	all.Wait()
}
