package ossl

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestEveryFieldHasARow checks that configFields and docs/COMPATIBILITY.md have every field of the
// running Go's tls.Config.
func TestEveryFieldHasARow(t *testing.T) {
	doc, err := os.ReadFile("docs/COMPATIBILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeFor[tls.Config]().NumField() {
		field := reflect.TypeFor[tls.Config]().Field(i)
		if !field.IsExported() {
			continue
		}
		if _, ok := configFields[field.Name]; !ok {
			t.Errorf("tls.Config.%s is not in configFields", field.Name)
		}
		row := regexp.MustCompile("(?m)^\\| `" + field.Name + "` \\| (honoured|refused|no effect)")
		if !row.Match(doc) {
			t.Errorf("docs/COMPATIBILITY.md has no row for tls.Config.%s", field.Name)
		}
	}
}

func TestRefusedByName(t *testing.T) {
	good := func() *tls.Config { return tlstest.ServerConfig() }
	badStaple := func(c *tls.Config) {
		cert := c.Certificates[0]
		cert.OCSPStaple = []byte("not an OCSP response")
		c.Certificates = []tls.Certificate{cert}
	}
	otherKey := func(c *tls.Config) {
		cert := c.Certificates[0]
		cert.PrivateKey = tlstest.Key(tlstest.P256, "another key")
		c.Certificates = []tls.Certificate{cert}
	}
	for field, edit := range map[string]func(*tls.Config){
		"Rand": func(c *tls.Config) { c.Rand = strings.NewReader("") },
		"UnwrapSession": func(c *tls.Config) {
			c.UnwrapSession = func([]byte, tls.ConnectionState) (*tls.SessionState, error) { return nil, nil }
		},
		"WrapSession": func(c *tls.Config) {
			c.WrapSession = func(tls.ConnectionState, *tls.SessionState) ([]byte, error) { return nil, nil }
		},
		"MinVersion":                     func(c *tls.Config) { c.MinVersion = tls.VersionTLS11 },
		"MaxVersion":                     func(c *tls.Config) { c.MaxVersion = tls.VersionTLS10 },
		"Renegotiation":                  func(c *tls.Config) { c.Renegotiation = tls.RenegotiateOnceAsClient },
		"EncryptedClientHelloConfigList": func(c *tls.Config) { c.EncryptedClientHelloConfigList = []byte{1} },
		"EncryptedClientHelloRejectionVerify": func(c *tls.Config) {
			c.EncryptedClientHelloRejectionVerify = func(tls.ConnectionState) error { return nil }
		},
		"EncryptedClientHelloKeys": func(c *tls.Config) { c.EncryptedClientHelloKeys = []tls.EncryptedClientHelloKey{{}} },
		"GetEncryptedClientHelloKeys": func(c *tls.Config) {
			c.GetEncryptedClientHelloKeys = func(*tls.ClientHelloInfo) ([]tls.EncryptedClientHelloKey, error) { return nil, nil }
		},
		"CipherSuites":     func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_RSA_WITH_RC4_128_SHA} },
		"CurvePreferences": func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{0x1234} },
		"NextProtos":       func(c *tls.Config) { c.NextProtos = []string{strings.Repeat("x", 256)} },
		"ClientAuth":       func(c *tls.Config) { c.ClientAuth = 17 },
		"Certificates":     badStaple,
	} {
		c := good()
		edit(c)
		wantConfigError(t, field, c)
	}
	c := good()
	c.Rand = rand.Reader
	if _, err := NewContext(c); err != nil {
		t.Errorf("crypto/rand's Reader is refused: %v", err)
	}
	c = good()
	c.CurvePreferences, c.CipherSuites, c.NextProtos = []tls.CurveID{}, []uint16{}, []string{}
	if _, err := NewContext(c); err != nil {
		t.Errorf("empty lists are refused: %v", err)
	}
	c = good()
	otherKey(c)
	wantConfigError(t, "Certificates", c)
	c = good()
	c.MinVersion, c.MaxVersion = tls.VersionTLS13, tls.VersionTLS12
	wantConfigError(t, "MinVersion", c)
	c = good()
	c.CurvePreferences, c.CipherSuites = []tls.CurveID{tls.CurveP256}, []uint16{0xfefe}
	c.MaxVersion = tls.VersionTLS12
	wantConfigError(t, "CipherSuites", c)
	// Without encryption, for export (CVE-2015-0204, CVE-2015-4000), DES, anonymous, the two values
	// that only signal, and RC4 (CVE-2015-2808). Some libssl builds have 3DES.
	for _, id := range []uint16{0, 0x003b, 0x0003, 0x0014, 0x0009, 0x0034, 0x00ff, 0x5600, tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA} {
		wantConfigError(t, "CipherSuites", tlstest.ServerConfig(tlstest.Only(tls.VersionTLS12), tlstest.Suites(id)))
	}
	wantConfigError(t, "MinVersion", tlstest.ServerConfig(func(c *tls.Config) { c.MinVersion = 0x0300 })) // CVE-2014-3566

	for option, opt := range map[string]Option{
		"WithSecurityLevel":       WithSecurityLevel(6),
		"WithTLS13CipherSuites":   WithTLS13CipherSuites(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
		"WithSignatureAlgorithms": WithSignatureAlgorithms(0x1234),
		"WithVerifiedChainCache":  WithVerifiedChainCache(-1),
		"WithCipherSuiteOrder":    WithCipherSuiteOrder(), // without CipherSuites
		"WithShards":              WithShards(33),
	} {
		wantConfigError(t, option, good(), opt)
	}
}

func wantConfigError(t *testing.T, field string, c *tls.Config, opts ...Option) {
	t.Helper()
	_, err := NewContext(c, opts...)
	var e *ConfigError
	if !errors.As(err, &e) {
		t.Errorf("%s: got %v, want a *ConfigError", field, err)
		return
	}
	if e.Field != field || e.Reason == "" || !strings.Contains(e.Error(), field) {
		t.Errorf("%s: got %q for field %q", field, e, e.Field)
	}
}

// TestHonouredFieldsAreAccepted sets every field that is not refused.
func TestHonouredFieldsAreAccepted(t *testing.T) {
	c := tlstest.ServerConfig()
	//lint:ignore SA1019 deprecated, and honoured
	c.NameToCertificate = map[string]*tls.Certificate{}
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, nil }
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }
	c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return nil }
	c.VerifyConnection = func(tls.ConnectionState) error { return nil }
	c.RootCAs, c.ClientCAs = tlstest.CA().Pool(), tlstest.CA().Pool()
	c.NextProtos = []string{"h2", "http/1.1"}
	c.ServerName = "name"
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.InsecureSkipVerify = true
	c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_AES_128_GCM_SHA256}
	//lint:ignore SA1019 no effect, as in crypto/tls
	c.PreferServerCipherSuites = true
	c.SessionTicketsDisabled = true
	c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS13
	c.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
	c.DynamicRecordSizingDisabled = true
	c.KeyLogWriter = io.Discard
	if _, err := NewContext(c); err != nil {
		t.Fatal(err)
	}
}

// TestUnknownFieldIsRefused takes a field out of configFields, as if only a newer Go had it.
func TestUnknownFieldIsRefused(t *testing.T) {
	check := configFields["ServerName"]
	delete(configFields, "ServerName")
	defer func() { configFields["ServerName"] = check }()
	c := tlstest.ServerConfig()
	c.ServerName = "set"
	wantConfigError(t, "ServerName", c)
	c.ServerName = ""
	if _, err := NewContext(c); err != nil {
		t.Errorf("refused although it is not set: %v", err)
	}
}
