//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestKeyUsage: libssl's TLS 1.2 servers don't use ECDSA certificates that lack digitalSignature.
// If no other certificate is left, the server is refused by name; clients, and servers that also
// have TLS 1.3, are not.
func TestKeyUsage(t *testing.T) {
	without := func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyAgreement }
	server := tlstest.New(tlstest.Options{Names: []string{tlstest.ServerName}, Edit: without})
	client := tlstest.New(tlstest.Options{Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Edit: without})
	rsa := tlstest.New(tlstest.Options{Kind: tlstest.RSA2048, Names: []string{tlstest.ServerName}, Edit: without})
	refused := func(err error) {
		t.Helper()
		var e *ossl.ConfigError
		if !errors.As(err, &e) || e.Field != "Certificates" || !strings.Contains(e.Reason, "digitalSignature") {
			t.Errorf("%v, want a ConfigError for Certificates", err)
		}
	}
	only12 := tlstest.ServerConfig(tlstest.Only(tls.VersionTLS12), tlstest.Certificates(server))
	ctx := ossltest.NewContext(t, only12)
	if _, err := ctx.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("listens")
	} else {
		refused(err)
	}
	if _, err := ossl.Listen("tcp", "127.0.0.1:0", only12); err == nil {
		t.Error("listens")
	} else {
		refused(err)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	refused(ctx.Server(b).Handshake())

	asks := opts(tlstest.AskClient(tls.RequireAndVerifyClientCert))
	for _, test := range []struct {
		name           string
		client, server []func(*tls.Config)
		good           bool
	}{
		{"TLS 1.3", opts(tlstest.Only(tls.VersionTLS13)), opts(tlstest.Certificates(server)), true},
		{"TLS 1.2, where both are allowed", opts(tlstest.Only(tls.VersionTLS12)), opts(tlstest.Certificates(server)), false},
		{"TLS 1.2, RSA", opts(tlstest.Only(tls.VersionTLS12)), opts(tlstest.Only(tls.VersionTLS12), tlstest.Certificates(rsa)), true},
		{"TLS 1.2, a client's", opts(tlstest.Only(tls.VersionTLS12), tlstest.Certificates(client)), asks, true},
		{"TLS 1.3, a client's", opts(tlstest.Only(tls.VersionTLS13), tlstest.Certificates(client)), asks, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := tlstest.Run(tlstest.Pairing{Client: ossltest.UnderTest, Server: ossltest.UnderTest},
				tlstest.Case{Client: tlstest.ClientWith(test.client...), Server: tlstest.ServerWith(test.server...)})
			if test.good {
				mustPass(t, o)
			} else if err := o.Client.HandshakeErr; err == nil || err.Error() != "remote error: tls: handshake failure" {
				t.Errorf("%v", err)
			}
		})
	}
}
