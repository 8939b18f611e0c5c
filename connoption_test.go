//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

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

// TestCallbacksAsk has each callback of a handshake ask its connection for its FIPS mode, as one that insists on it does.
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
