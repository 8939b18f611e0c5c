//go:build cgo

package ossl_test

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
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

// TestSignerOrCallbackMayNotReturn: what libssl has called may end its goroutine, so that libssl never goes on. By then nothing
// of the connection may be left with the thread, which goes on to serve others when the connection is freed.
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
