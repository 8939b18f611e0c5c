//go:build cgo || ossl_nocgo

package conns

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestHangingSignersStopNobody: signers or callbacks that hang keep no other client of the same
// Context waiting.
func TestHangingSignersStopNobody(t *testing.T) {
	const hanging = 150 // more than the places that a Context once had
	for _, what := range []string{"Sign", "VerifyPeerCertificate", "VerifyConnection", "GetCertificate"} {
		for _, impl := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
			if testing.Short() && impl == tlstest.Std {
				continue
			}
			t.Run(what+"/"+impl.Name(), func(t *testing.T) {
				var asked atomic.Int32
				release := make(chan struct{})
				hang := func() {
					if asked.Add(1) <= hanging {
						<-release
					}
				}
				cert := tlstest.ServerCert(tlstest.P256)
				if what == "Sign" {
					cert.PrivateKey = &tlstest.LookingSigner{Signer: cert.PrivateKey.(crypto.Signer), Before: hang}
				}
				config := tlstest.ServerConfig(func(c *tls.Config) {
					c.ClientAuth = tls.RequireAnyClientCert
					c.Certificates = []tls.Certificate{cert}
					switch what {
					case "VerifyPeerCertificate":
						c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { hang(); return nil }
					case "VerifyConnection":
						c.VerifyConnection = func(tls.ConnectionState) error { hang(); return nil }
					case "GetCertificate":
						c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { hang(); return nil, nil }
					}
				})
				clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
					c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				})
				var all sync.WaitGroup
				var failed atomic.Int32
				begin := func() (done chan error) {
					a, b := tlstest.Buffered()
					done = make(chan error, 1)
					all.Go(func() { tlstest.Std.Client(a, clientConfig).Handshake() })
					all.Go(func() {
						err := impl.Server(b, config).Handshake()
						if err != nil {
							failed.Add(1)
						}
						done <- err
					})
					return done
				}
				for range hanging {
					begin()
				}
				tlstest.WaitUntil(t, func() bool { return asked.Load() == hanging })
				for range 10 {
					if err := <-begin(); err != nil {
						t.Error(err)
					}
				}
				close(release)
				all.Wait()
				if n := failed.Load(); n != 0 {
					t.Errorf("%d handshakes failed", n)
				}
			})
		}
	}
}
