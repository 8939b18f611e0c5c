//go:build cgo

package conns

import (
	"crypto"
	"crypto/tls"
	"errors"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestConfigErrorsComeFromTheHandshake(t *testing.T) {
	a, b := tlstest.Buffered()
	bad := &tls.Config{MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}
	for name, c := range map[string]*ossl.Conn{"client": ossl.Client(a, bad), "server": ossl.Server(b, bad)} {
		var e *ossl.ConfigError
		if err := c.Handshake(); !errors.As(err, &e) || e.Field != "MinVersion" {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.As(err, &e) {
			t.Errorf("%s: Read: %v", name, err)
		}
		c.Close()
	}
	if _, err := ossl.Listen("tcp", "127.0.0.1:0", bad); err == nil {
		t.Error("Listen accepts it")
	}
	if _, err := ossl.Listen("tcp", "127.0.0.1:0", &tls.Config{}); err == nil {
		t.Error("Listen without a certificate")
	}
}

func TestNilKeys(t *testing.T) {
	for _, cert := range []tls.Certificate{
		{},
		{Certificate: tlstest.ServerCert(tlstest.P256).Certificate},
		{Certificate: tlstest.ServerCert(tlstest.P256).Certificate, PrivateKey: (*nilSigner)(nil)},
		{Certificate: [][]byte{{}}},
	} {
		var e *ossl.ConfigError
		if _, err := ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{cert}}); !errors.As(err, &e) {
			t.Errorf("got %v", err)
		}
	}
}

// TestChangedConfigIsCompiledAgain: the drop-in functions don't use a configuration as it was
// before it was changed.
func TestChangedConfigIsCompiledAgain(t *testing.T) {
	config := &tls.Config{InsecureSkipVerify: true, ServerName: tlstest.ServerName}
	for _, skip := range []bool{true, false} {
		config.InsecureSkipVerify = skip
		a, b := tlstest.Buffered()
		go ossl.Server(b, tlstest.ServerConfig()).Handshake()
		if err := ossl.Client(a, config).Handshake(); (err == nil) != skip {
			t.Errorf("InsecureSkipVerify=%v: %v", skip, err)
		}
	}
}

type nilSigner struct{ crypto.Signer }
