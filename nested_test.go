//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestNestedHandshake has the verification of a client's certificate, which is called from within libssl, shake hands on another
// connection and export from it, on the same thread and under the names of the outer connection's secrets. Those must stay its
// own.
func TestNestedHandshake(t *testing.T) {
	for name, path := range map[string]ossl.RecordPath{"own": ossl.RecordsOwn, "libssl": ossl.RecordsLibssl} {
		t.Run(name, func(t *testing.T) {
			inner := ossltest.OnPath(path)
			nested := func() error {
				a, b := tlstest.NewPipe()
				server := inner.Server(b, tlstest.ServerConfig())
				done := make(chan error, 1)
				go func() { done <- server.Handshake() }()
				client := inner.Client(a, tlstest.ClientConfig())
				if err := errors.Join(client.Handshake(), <-done); err != nil {
					return err
				}
				for _, label := range []string{"c hs traffic", "c ap traffic", "s ap traffic", "exp master"} {
					if _, err := client.(*ossl.Conn).ExportKeyingMaterial(label, nil, 32); err != nil {
						return err
					}
				}
				return errors.Join(client.Close(), server.Close())
			}
			called := 0
			serverConfig := tlstest.ServerConfig(func(c *tls.Config) {
				c.ClientAuth = tls.RequireAnyClientCert
				c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
					called++
					return nested()
				}
			})
			clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
				c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			})
			a, b := tlstest.NewPipe()
			client, server := ossltest.OnPath(ossl.RecordsOwn).Client(a, clientConfig), ossltest.OnPath(ossl.RecordsOwn).Server(b,
				serverConfig)
			tlstest.Shake(t, client, server)
			tlstest.EchoBack(t, client, server, make([]byte, 100))
			if called != 1 || !server.(*ossl.Conn).TakenOver() {
				t.Errorf("called %d times, taken over: %t", called, server.(*ossl.Conn).TakenOver())
			}
		})
	}
}
