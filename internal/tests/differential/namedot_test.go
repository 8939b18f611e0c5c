//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestServerNameDot: servers remove the dot from a client's name, with and without callbacks, in
// full handshakes and resumed ones. crypto/tls refuses such a ClientHello, and doesn't send one.
func TestServerNameDot(t *testing.T) {
	dotted := append([]byte{0, byte(len(tlstest.ServerName) + 4), 0, 0, byte(len(tlstest.ServerName) + 1)},
		tlstest.ServerName+"."...)
	for _, version := range tlstest.Versions {
		for _, kind := range []string{"plain", "GetCertificate", "GetConfigForClient", "tickets"} {
			t.Run(fmt.Sprintf("%s/%s", tlstest.VersionName(version), kind), func(t *testing.T) {
				heard := tlstest.ServerName
				c := tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(version)),
					Server: tlstest.ServerWith(func(c *tls.Config) {
						c.SessionTicketsDisabled = kind != "tickets"
						cert, inner := c.Certificates[0], c.Clone()
						switch kind {
						case "GetCertificate":
							c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
								heard = hello.ServerName
								return &cert, hello.SupportsCertificate(&cert)
							}
						case "GetConfigForClient":
							c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
								heard = hello.ServerName
								return inner, nil
							}
						}
					}),
					ClientFault: tlstest.EditExtension(tlstest.ExtServerName, func([]byte) []byte { return dotted }),
				}
				// The client has not sent the dot, so its Finished doesn't fit the server's transcript.
				o := tlstest.Run(tlstest.Pairing{Client: tlstest.Std, Server: ossltest.UnderTest}, c)
				if o.Server.Name != tlstest.ServerName || heard != tlstest.ServerName {
					t.Errorf("the server's name is %q, the callback's %q", o.Server.Name, heard)
				}
				if err := o.Server.HandshakeErr; err == nil || err.Error() == "tls: error decoding message" {
					t.Errorf("the server's error: %v", err)
				}
				if o := tlstest.Run(pairings()[0], c); o.Server.HandshakeErr == nil || o.Server.Name != "" {
					t.Errorf("crypto/tls: %q, %v", o.Server.Name, o.Server.HandshakeErr)
				}
			})
		}
	}
}
