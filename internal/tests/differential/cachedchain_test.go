//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// shakeAndEcho runs a handshake and echoes one byte. It returns the last errors of the client and
// the server.
func shakeAndEcho(newClient, newServer func(*tlstest.PipeConn) tlstest.Conn) (client, server error) {
	a, b := tlstest.NewPipe()
	c, s := newClient(a), newServer(b)
	done := make(chan error, 1)
	go func() {
		defer s.Close()
		if err := s.Handshake(); err != nil {
			done <- err
			return
		}
		buf := make([]byte, 1)
		_, err := io.ReadFull(s, buf)
		if err == nil {
			_, err = s.Write(buf)
		}
		done <- err
	}()
	defer c.Close()
	if client = c.Handshake(); client == nil {
		c.Write([]byte("x"))
		_, client = io.ReadFull(c, make([]byte, 1))
	}
	c.Close()
	return client, <-done
}

// TestCachedChainNeverFailsOpen makes an accepted connection and then a denied one with the same
// chain, on one Context with its cache of verified chains on.
func TestCachedChainNeverFailsOpen(t *testing.T) {
	for _, version := range tlstest.Versions {
		deny := false
		now := time.Now()
		for _, test := range []struct {
			name  string
			edit  func(*tls.Config)
			deny  func()
			name2 string                 // asked for the second time
			cert2 func() tls.Certificate // the peer's the second time; nil: the same
		}{
			{name: "VerifyConnection", edit: func(c *tls.Config) {
				c.VerifyConnection = func(tls.ConnectionState) error {
					if deny {
						return tlstest.ErrDenied
					}
					return nil
				}
			}},
			{name: "VerifyPeerCertificate", edit: func(c *tls.Config) {
				c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
					if deny {
						return tlstest.ErrDenied
					}
					return nil
				}
			}},
			{name: "expired", edit: func(c *tls.Config) { c.Time = func() time.Time { return now } },
				deny: func() { now = now.Add(100 * time.Hour) }},
			{name: "not yet valid", edit: func(c *tls.Config) { c.Time = func() time.Time { return now } },
				deny: func() { now = now.Add(-100 * time.Hour) }},
			{name: "other name", edit: func(*tls.Config) {}, name2: tlstest.OtherName},
			{name: "leaf without its key", edit: func(*tls.Config) {}, cert2: func() tls.Certificate {
				// The accepted leaf, which is public, with another key. crypto/tls sends it anyway.
				c := tlstest.ServerCert(tlstest.P256)
				c.PrivateKey = tlstest.Key(tlstest.P256, "stranger")
				return c
			}},
			{name: "leaf changed by a bit", edit: func(*tls.Config) {}, cert2: func() tls.Certificate {
				c := tlstest.ServerCert(tlstest.P256)
				der := append([]byte(nil), c.Certificate[0]...)
				der[len(der)-5] ^= 1
				c.Certificate = [][]byte{der}
				return c
			}},
		} {
			t.Run(tlstest.VersionName(version)+"/"+test.name, func(t *testing.T) {
				deny, now = false, time.Now()
				ctx, err := ossl.NewContext(tlstest.ClientConfig(tlstest.Only(version), test.edit), ossl.WithVerifiedChainCache(100))
				if err != nil {
					t.Fatal(err)
				}
				cert := tlstest.ServerCert(tlstest.P256)
				name := tlstest.ServerName
				try := func() (client, server error) {
					return shakeAndEcho(func(p *tlstest.PipeConn) tlstest.Conn { return ctx.Client(p, name) },
						func(p *tlstest.PipeConn) tlstest.Conn {
							return tlstest.Std.Server(p, tlstest.ServerConfig(tlstest.Only(version), tlstest.Certificates(cert)))
						})
				}
				for range 2 {
					if client, server := try(); client != nil || server != nil {
						t.Fatalf("the good connection failed: %v, %v", client, server)
					}
				}
				deny = true
				if test.deny != nil {
					test.deny()
				}
				if test.name2 != "" {
					name = test.name2
				}
				if test.cert2 != nil {
					cert = test.cert2()
				}
				for range 2 {
					if client, server := try(); client == nil || server == nil {
						t.Errorf("accepted: %v, %v", client, server)
					}
				}
			})
		}
	}
}

// TestCachedChainServesOneRole uses one Context as a client that verifies nothing and as a server
// that verifies its clients, and shows it the same chain in both roles. The server must verify it
// although the client has accepted it.
func TestCachedChainServesOneRole(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, name := range []string{"", tlstest.ServerName} {
			t.Run(fmt.Sprintf("%s/name=%q", tlstest.VersionName(version), name), func(t *testing.T) {
				config := tlstest.ServerConfig(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert),
					tlstest.InsecureSkipVerify)
				ctx, err := ossl.NewContext(config, ossl.WithVerifiedChainCache(100))
				if err != nil {
					t.Fatal(err)
				}
				stranger := tlstest.SpecimenNamed("unknown CA").Cert(tlstest.ServerRole)
				client, server := shakeAndEcho(func(p *tlstest.PipeConn) tlstest.Conn { return ctx.Client(p, name) },
					func(p *tlstest.PipeConn) tlstest.Conn {
						return tlstest.Std.Server(p, tlstest.ServerConfig(tlstest.Only(version), tlstest.Certificates(stranger)))
					})
				if client != nil || server != nil {
					t.Fatalf("as an insecure client: %v, %v", client, server)
				}
				client, server = shakeAndEcho(func(p *tlstest.PipeConn) tlstest.Conn {
					return tlstest.Std.Client(p, tlstest.ClientConfig(tlstest.Only(version), tlstest.SendCertificate(stranger)))
				}, func(p *tlstest.PipeConn) tlstest.Conn { return ctx.Server(p) })
				if client == nil || server == nil {
					t.Errorf("as a server it accepted a client that it can't verify: %v, %v", client, server)
				}
			})
		}
	}
}
