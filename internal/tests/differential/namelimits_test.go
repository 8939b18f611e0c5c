//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestServerNameLimits: libssl neither sends nor reads names of more than 255 bytes, or with a zero
// byte. crypto/tls does both.
func TestServerNameLimits(t *testing.T) {
	long := strings.Repeat("a.", 127) // 254 bytes, and no dot at the end
	for _, version := range tlstest.Versions {
		for _, test := range []struct {
			name, sni string
			good      bool
		}{
			{"255 bytes", long + "b", true},
			{"256 bytes", long + "bb", false},
			{"300 bytes", long + strings.Repeat("b", 46), false},
			{"a zero byte", "server.test\x00.other.test", false},
			{"only a zero byte", "\x00", false},
		} {
			for _, kind := range []string{"plain", "GetCertificate", "tickets"} {
				t.Run(fmt.Sprintf("%s/server/%s/%s", tlstest.VersionName(version), kind, test.name), func(t *testing.T) {
					heard := ""
					c := tlstest.Case{
						Client: tlstest.ClientWith(tlstest.Only(version),
							func(c *tls.Config) { c.ServerName, c.InsecureSkipVerify = test.sni, true }),
						Server: tlstest.ServerWith(func(c *tls.Config) {
							c.SessionTicketsDisabled = kind != "tickets"
							if cert := c.Certificates[0]; kind == "GetCertificate" {
								c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
									heard = hello.ServerName
									return &cert, nil
								}
							}
						}),
					}
					mustPass(t, tlstest.Run(pairings()[0], c))
					heard = ""
					o := tlstest.Run(tlstest.Pairing{Client: tlstest.Std, Server: ossltest.UnderTest}, c)
					if test.good {
						mustPass(t, o)
					} else if err := o.Client.HandshakeErr; err == nil || err.Error() != "remote error: tls: unrecognized name" {
						t.Errorf("the client got %v", err)
					}
					if o.Server.Name != test.sni || kind == "GetCertificate" && heard != test.sni {
						t.Errorf("the server's name is %q, GetCertificate's %q", o.Server.Name, heard)
					}
				})
			}
			t.Run(tlstest.VersionName(version)+"/client/"+test.name, func(t *testing.T) {
				insecure := tlstest.ClientConfig(tlstest.Only(version), func(c *tls.Config) { c.InsecureSkipVerify = true })
				config := insecure.Clone()
				config.ServerName = test.sni
				_, err := ossl.NewContext(config)
				refused := func(err error) bool {
					var e *ossl.ConfigError
					return errors.As(err, &e) && e.Field == "ServerName"
				}
				if refused(err) == test.good {
					t.Errorf("NewContext: %v", err)
				}
				a, b := tlstest.Buffered()
				defer a.Close()
				defer b.Close()
				heard := ""
				server := tls.Server(b, tlstest.ServerConfig())
				done := make(chan struct{})
				go func() {
					defer close(done)
					server.Handshake()
					heard = server.ConnectionState().ServerName
				}()
				ctx := ossltest.NewContext(t, insecure)
				err = ctx.Client(a, test.sni).Handshake()
				a.Close()
				<-done
				if test.good && (err != nil || heard != test.sni) {
					t.Errorf("%v; the server heard %q", err, heard)
				}
				if !test.good && (!refused(err) || heard != "") {
					t.Errorf("%v; the server heard %q", err, heard)
				}
			})
		}
	}
}
