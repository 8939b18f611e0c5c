//go:build cgo || ossl_nocgo

package conns

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestCheckCertificate: a certificate passes if and only if a server of the Context could serve
// some client with it.
func TestCheckCertificate(t *testing.T) {
	max12 := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
	onlyRSA := func(c *tls.Config) {
		c.MaxVersion = tls.VersionTLS12
		c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	}
	noSignature := tlstest.New(tlstest.Options{Edit: func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyAgreement }})
	named := func(c tls.Certificate, schemes ...tls.SignatureScheme) tls.Certificate {
		c.SupportedSignatureAlgorithms = schemes
		return c
	}
	p256, p384 := tlstest.ServerCert(tlstest.P256), tlstest.ServerCert(tlstest.P384)
	rsa2048, rsa1024 := tlstest.ServerCert(tlstest.RSA2048), tlstest.ServerCert(tlstest.RSA1024)
	stranger := p256
	stranger.PrivateKey = p384.PrivateKey
	for _, test := range []struct {
		name string
		cert tls.Certificate
		edit func(*tls.Config)
		opts []ossl.Option
		good bool
	}{
		{"P-256", p256, nil, nil, true},
		{"RSA-2048", rsa2048, nil, nil, true},
		{"RSA-1024", rsa1024, nil, nil, false},
		{"level 3, P-256", p256, nil, []ossl.Option{ossl.WithSecurityLevel(3)}, true},
		{"level 3, RSA-2048", rsa2048, nil, []ossl.Option{ossl.WithSecurityLevel(3)}, false},
		{"RSA algorithms, P-256", p256, nil, []ossl.Option{ossl.WithSignatureAlgorithms(tls.PSSWithSHA256)}, false},
		{"RSA algorithms, RSA-2048", rsa2048, nil, []ossl.Option{ossl.WithSignatureAlgorithms(tls.PSSWithSHA256)}, true},
		{"algorithms of TLS 1.2, RSA-2048", rsa2048, nil, []ossl.Option{ossl.WithSignatureAlgorithms(tls.PKCS1WithSHA256)}, true},
		{"RSA suites, P-256", p256, onlyRSA, nil, false},
		{"RSA suites, RSA-2048", rsa2048, onlyRSA, nil, true},
		{"TLS 1.2, P-256", p256, max12, nil, true},
		{"TLS 1.2, another curve", p384, func(c *tls.Config) {
			max12(c)
			c.CurvePreferences = []tls.CurveID{tls.CurveP256}
		}, nil, false},
		{"another curve", p384, func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256} }, nil, true},
		{"TLS 1.2, no digitalSignature", noSignature, max12, nil, false},
		{"a key of another certificate", stranger, nil, nil, false},
		{"no algorithm in common", named(rsa2048, tls.ECDSAWithP256AndSHA256), nil, nil, false},
		{"its algorithm", named(rsa2048, tls.PSSWithSHA384), nil, nil, true},
		{"empty", tls.Certificate{}, nil, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cert := test.cert
			sc := tlstest.ServerConfig(func(c *tls.Config) {
				c.Certificates = nil
				c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
				if test.edit != nil {
					test.edit(c)
				}
			})
			server := ossltest.NewContext(t, sc, test.opts...)
			checked := server.CheckCertificate(&cert)
			var e *ossl.ConfigError
			if checked != nil && (!errors.As(checked, &e) || e.Field != "Certificates") {
				t.Errorf("%T: %v", checked, checked)
			}
			if good := checked == nil; good != test.good {
				t.Errorf("CheckCertificate returns %v", checked)
			}
			served := false
			var errs []error
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				cc := tlstest.ClientConfig(tlstest.Only(version), func(c *tls.Config) {
					c.InsecureSkipVerify = true
					c.CurvePreferences = sc.CurvePreferences
				})
				if version > sc.MaxVersion && sc.MaxVersion != 0 {
					continue
				}
				client, err := ossl.NewContext(cc, test.opts...)
				if err == nil {
					a, b := tlstest.Buffered()
					err = shakeHands(client.Client(a, tlstest.ServerName), server.Server(b))
				}
				served = served || err == nil
				errs = append(errs, err)
			}
			if served != test.good {
				t.Errorf("connections: %v", errs)
			}
		})
	}
	if err := ossltest.NewContext(t, tlstest.ServerConfig()).CheckCertificate(nil); err == nil {
		t.Error("nil passes")
	}
}

// It doesn't matter if the Context has a certificate of its own, pauses for a cache, or asks for
// client certificates.
func TestCheckCertificateElsewhere(t *testing.T) {
	p256, weak := tlstest.ServerCert(tlstest.P256), tlstest.ServerCert(tlstest.RSA1024)
	for name, edit := range map[string]func(*tls.Config){
		"certificate": func(*tls.Config) {},
		"client":      func(c *tls.Config) { c.Certificates = nil },
		"mutual": func(c *tls.Config) {
			c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { panic("it is asked") }
			c.VerifyConnection = func(tls.ConnectionState) error { panic("it is asked") }
		},
		"key log": func(c *tls.Config) { c.KeyLogWriter = panicWriter{} },
		"ALPN":    func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} },
	} {
		ctx := ossltest.NewContext(t, tlstest.ServerConfig(edit))
		if err := ctx.CheckCertificate(&p256); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := ctx.CheckCertificate(&weak); err == nil {
			t.Errorf("%s: a weak key passes", name)
		}
	}
}

type panicWriter struct{}

func (panicWriter) Write([]byte) (int, error) { panic("it is written to") }

type countingSigner struct {
	crypto.Signer
	calls atomic.Int32
}

func (s *countingSigner) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	s.calls.Add(1)
	return s.Signer.Sign(rand, digest, opts)
}

// CheckCertificate doesn't sign with a key that may be far away.
func TestSignerCheckCertificate(t *testing.T) {
	for _, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048} {
		cert := tlstest.ServerCert(kind)
		signer := &countingSigner{Signer: cert.PrivateKey.(crypto.Signer)}
		cert.PrivateKey = signer
		for level, good := range map[int]bool{2: true, 3: kind == tlstest.P256} {
			ctx := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithSecurityLevel(level))
			if err := ctx.CheckCertificate(&cert); (err == nil) != good {
				t.Errorf("%s at level %d: %v", kind, level, err)
			}
		}
		if n := signer.calls.Load(); n > 0 {
			t.Errorf("%s: %d signatures", kind, n)
		}
	}
}

// TestContextOf: GetCertificate can find out for which Context it chooses.
func TestContextOf(t *testing.T) {
	var asked, chosen atomic.Pointer[ossl.Context]
	cert := tlstest.ServerCert(tlstest.P256)
	get := func(to *atomic.Pointer[ossl.Context]) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			to.Store(ossl.ContextOf(hello))
			return &cert, nil
		}
	}
	other := tlstest.ServerConfig(func(c *tls.Config) { c.Certificates, c.GetCertificate = nil, get(&chosen) })
	sc := tlstest.ServerConfig(func(c *tls.Config) {
		c.Certificates, c.GetCertificate = nil, get(&asked)
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			asked.Store(ossl.ContextOf(hello))
			if hello.ServerName == tlstest.OtherName {
				return other, nil
			}
			return nil, nil
		}
	})
	server, client := ossltest.NewContext(t, sc), ossltest.NewContext(t,
		tlstest.ClientConfig(func(c *tls.Config) { c.InsecureSkipVerify = true }))
	for _, name := range []string{tlstest.ServerName, tlstest.OtherName} {
		a, b := tlstest.Buffered()
		if err := shakeHands(client.Client(a, name), server.Server(b)); err != nil {
			t.Fatal(err)
		}
	}
	if asked.Load() != server {
		t.Error("ContextOf doesn't return the server's Context")
	}
	if c := chosen.Load(); c == nil || c == server {
		t.Errorf("ContextOf returns %p for a Context that was chosen", c)
	}
	var std *ossl.Context = server
	a, b := tlstest.Buffered()
	sc = tlstest.ServerConfig(func(c *tls.Config) {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			std = ossl.ContextOf(hello)
			return nil, nil
		}
	})
	if err := shakeHands(tlstest.Std.Client(a, tlstest.ClientConfig()), tlstest.Std.Server(b, sc)); err != nil {
		t.Fatal(err)
	}
	if std != nil || ossl.ContextOf(nil) != nil || ossl.ContextOf(&tls.ClientHelloInfo{}) != nil {
		t.Error("ContextOf returns a Context without a handshake")
	}
}

// shakeHands returns the errors of both sides.
func shakeHands(client, server tlstest.Conn) error {
	defer client.Close()
	defer server.Close()
	done := make(chan error, 1)
	go func() {
		err := server.Handshake()
		if err != nil {
			server.Close()
		}
		done <- err
	}()
	err := client.Handshake()
	if err != nil {
		client.Close()
	}
	return errors.Join(err, <-done)
}
