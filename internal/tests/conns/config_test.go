//go:build cgo || ossl_nocgo

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

// TestCipherSuiteOrder: with WithCipherSuiteOrder, TLS 1.2 suites are in the order of the
// configuration, in both roles; without it, they are in crypto/tls's order.
func TestCipherSuiteOrder(t *testing.T) {
	suites := []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	for _, ordered := range []bool{true, false} {
		want, options := suites[1], []ossl.Option{}
		if ordered {
			want, options = suites[0], append(options, ossl.WithCipherSuiteOrder())
		}
		config := tlstest.ServerConfig()
		config.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
		config.MaxVersion, config.CipherSuites = tls.VersionTLS12, suites
		server, err := ossl.NewContext(config, options...)
		if err != nil {
			t.Fatal(err)
		}
		a, b := tlstest.Buffered()
		go server.Server(b).Handshake()
		client := tls.Client(a, &tls.Config{RootCAs: tlstest.CA().Pool(), ServerName: tlstest.ServerName})
		if err := client.Handshake(); err != nil || client.ConnectionState().CipherSuite != want {
			t.Errorf("server, ordered %v: %s, %v", ordered, tls.CipherSuiteName(client.ConnectionState().CipherSuite), err)
		}
		offering, err := ossl.NewContext(&tls.Config{RootCAs: tlstest.CA().Pool(), MaxVersion: tls.VersionTLS12,
			CipherSuites: suites}, options...)
		if err != nil {
			t.Fatal(err)
		}
		a, b = tlstest.Buffered()
		var offered []uint16
		config = tlstest.ServerConfig()
		config.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
		config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			offered = hello.CipherSuites
			return nil, nil
		}
		done := make(chan error, 1)
		go func() { done <- tls.Server(b, config).Handshake() }()
		if err := offering.Client(a, tlstest.ServerName).Handshake(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || offered[0] != want {
			t.Errorf("client, ordered %v: %x, %v", ordered, offered, err)
		}
	}
}
