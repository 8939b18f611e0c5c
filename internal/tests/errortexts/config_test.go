//go:build cgo || ossl_nocgo

package errortexts

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// A fault is a mistake in a configuration, in a file, or of the host.
type fault struct {
	name string
	of   func(t *testing.T) error
	from string // the first OpenSSL version that has the row's text, or ""
}

const signedWithSHA1 = "a certificate signed with SHA-1" // accepted by 3.5 and later

func newContext(opts ...ossl.Option) func(edits ...func(*tls.Config)) func(*testing.T) error {
	return func(edits ...func(*tls.Config)) func(*testing.T) error {
		return func(*testing.T) error {
			_, err := ossl.NewContext(tlstest.ServerConfig(edits...), opts...)
			return err
		}
	}
}

// getCertificate makes a server use cert for the client.
func getCertificate(cert func() tls.Certificate) func(*testing.T) error {
	return func(*testing.T) error {
		c := cert()
		m := mistake{server: opts(func(config *tls.Config) {
			config.Certificates = nil
			config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c, nil }
		})}
		_, err := errorOf(&m, tlstest.ServerRole, ossltest.Impl{})
		return err
	}
}

func weak() tls.Certificate { return specimen("RSA-1024", tlstest.ServerRole) }

// bySHA1 returns a certificate that is signed with SHA-1.
func bySHA1() tls.Certificate {
	return tlstest.New(tlstest.Options{Kind: tlstest.P256,
		Edit: func(c *x509.Certificate) { c.SignatureAlgorithm = x509.ECDSAWithSHA1 }})
}

func belowWeak() tls.Certificate {
	w := weak()
	leaf, err := x509.ParseCertificate(w.Certificate[0])
	if err != nil {
		panic(err)
	}
	c := tlstest.ServerCert(tlstest.P256)
	c.Certificate = append(c.Certificate[:1:1], leaf.Raw)
	return c
}

func keyFile(content []byte, opts ...keys.Option) func(*testing.T) error {
	return func(t *testing.T) error {
		name := filepath.Join(t.TempDir(), "key.pem")
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := keys.Load(name, opts...)
		return err
	}
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func keyPEM() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(tlstest.Key(tlstest.P256, "errortexts"))
	if err != nil {
		panic(err)
	}
	return pemOf("PRIVATE KEY", der)
}

func testdata(name string) []byte {
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		panic(err)
	}
	return content
}

func answer(text string, err error) keys.Option {
	return keys.WithPassphrase(func(string) ([]byte, error) { return []byte(text), err })
}

// peerBelow connects a client with a security level to a server whose key is below it.
func peerBelow(*testing.T) error {
	m := mistake{server: opts(tlstest.Certificates(weak()))}
	_, err := errorOf(&m, tlstest.ClientRole, ossltest.Optioned{Options: []ossl.Option{ossl.WithSecurityLevel(2)}})
	return err
}

func library(spec string) func(*testing.T) error {
	return func(*testing.T) error {
		_, err := ossl.NewContext(nil, ossl.WithLibrary(spec))
		return err
	}
}

// faults are the faults that need no process of their own.
func faults() []fault {
	plain, level3 := newContext(), newContext(ossl.WithSecurityLevel(3))
	chosen := tlstest.ServerCert(tlstest.P256)
	chosen.PrivateKey = tlstest.Key(tlstest.P256, "errortexts stranger")
	return []fault{
		{"an RSA key of 1024 bits", plain(tlstest.Certificates(weak())), ""},
		{"an RSA key of 1024 bits from GetCertificate", getCertificate(weak), ""},
		{"an RSA key of 2048 bits at level 3", level3(rsaCert), ""},
		{"a P-256 key at level 4", newContext(ossl.WithSecurityLevel(4))(), ""},
		{signedWithSHA1, plain(tlstest.Certificates(bySHA1())), ""},
		{"an RSA key of 1024 bits in the chain", plain(tlstest.Certificates(belowWeak())), ""},
		{"a server whose key is below the client's WithSecurityLevel", peerBelow, ""},
		{"a key of another certificate", plain(tlstest.Certificates(chosen)), ""},
		{"a malformed certificate", plain(serves("garbage for a leaf")), ""},
		{"a cipher suite that OpenSSL lacks", plain(tlstest.Suites(tls.TLS_RSA_WITH_RC4_128_SHA)), ""},
		{"a group that OpenSSL lacks", plain(tlstest.Curves(0x5a5a)), ""},
		{"a field that can't be honoured", plain(func(c *tls.Config) { c.Renegotiation = tls.RenegotiateOnceAsClient }), ""},
		{"versions that leave nothing",
			plain(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS13, tls.VersionTLS12 }), ""},
		{"a server without a certificate", func(t *testing.T) error {
			_, err := ossl.Listen("tcp", "127.0.0.1:0", &tls.Config{})
			return err
		}, ""},
		{"another OpenSSL than the one that is loaded", library("9"), ""},

		{"a key file that doesn't exist", func(*testing.T) error { _, err := keys.Load("/nonexistent/key.pem"); return err }, ""},
		{"a key file that is damaged", keyFile(keyPEM()[:100]), "3.0"},
		{"a key file with something else in it", keyFile(pemOf("CERTIFICATE", tlstest.CA().Cert.Raw)), ""},
		{"an encrypted key file without a passphrase", keyFile(testdata("encrypted.pem")), ""},
		{"an encrypted key file with a wrong passphrase", keyFile(testdata("encrypted.pem"), answer("wrong", nil)), ""},
		{"an encrypted key file whose passphrase isn't found",
			keyFile(testdata("encrypted.pem"), answer("", errors.New("vault is sealed"))), ""},
		{"an EC key with explicit parameters", keyFile(testdata("explicit.pem")), ""},
		{"an EC key on another curve", keyFile(testdata("secp256k1.pem")), ""},
		{"a URI that no provider serves", func(*testing.T) error { _, err := keys.Load("nosuch:object=key"); return err }, "3.0"},
		{"a provider that isn't installed", keyFile(nil, keys.WithProvider("nosuch")), "3.0"},
		{"a certificate file of another key", func(t *testing.T) error {
			dir := t.TempDir()
			cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
			if err := errors.Join(os.WriteFile(key, keyPEM(), 0o600),
				os.WriteFile(cert, pemOf("CERTIFICATE", tlstest.CA().Cert.Raw), 0o600)); err != nil {
				t.Fatal(err)
			}
			_, err := keys.LoadX509KeyPair(cert, key)
			return err
		}, ""},
	}
}

// TestFaults compares the errors for mistakes in configurations and files with docs/ERRORS.md.
func TestFaults(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			if f.from != "" && !ossltest.AtLeast(f.from) {
				t.Skipf("OpenSSL %s has another text", ossltest.Version())
			}
			err := f.of(t)
			if err == nil && f.name == signedWithSHA1 && ossltest.AtLeast("3.1") {
				t.Skipf("OpenSSL %s accepts it", ossltest.Version())
			}
			checkText(t, rowOf(t, f.name)[0], err)
		})
	}
}

// hostFaults are the host's faults: for each the openssl.cnf, the environment, and the call.
var hostFaults = []struct {
	name, conf string
	env        []string
	of         func() error
	from       string
}{
	{"an RSA key of 2048 bits, and a host policy of level 3", ossltest.PolicyMain + "CipherString = DEFAULT:@SECLEVEL=3\n", nil,
		func() error { return newContext()(rsaCert)(nil) }, ""},
	{"a host policy that OpenSSL doesn't know", ossltest.PolicyMain + "Colour = blue\n", nil, newDefault, ""},
	{"a suite that the host policy forbids", ossltest.PolicyMain + "CipherString = ECDHE-ECDSA-AES256-GCM-SHA384\n", nil,
		func() error { return newContext()(ecdsaSuite, v12)(nil) }, ""},
	{"an openssl.cnf with a syntax error", "openssl_conf = main\n[main\n", nil, newDefault, ""},
	{"an openssl.cnf that includes a missing file", ".include /nonexistent/policy.cnf\n", nil, newDefault, ""},
	{"an openssl.cnf that activates a missing provider", "openssl_conf = main\n[main]\nproviders = all\n[all]\ndefault = two\n" +
		"nosuch = one\n[one]\nactivate = 1\nmodule = /nonexistent/nosuch.so\n[two]\nactivate = 1\n", nil, newDefault, "3.0"},
	{"an openssl.cnf that can't be opened", "", []string{"OPENSSL_CONF=/proc/self/fd"}, newDefault, ""},
	{"an openssl.cnf that asks for FIPS mode and includes a missing file", ".include /nonexistent/fipsmodule.cnf\n" +
		"openssl_conf = main\n[main]\nalg_section = all\n[all]\ndefault_properties = fips=yes\n", nil, newDefault, "3.0"},
	{"an openssl.cnf whose only provider isn't there", "openssl_conf = main\n[main]\nproviders = all\n[all]\nnosuch = one\n" +
		"[one]\nactivate = 1\nmodule = /nonexistent/nosuch.so\n", nil, newDefault, "3.0"},
	{"no OpenSSL at a path", "", []string{"OSSL_LIBRARY=/nonexistent/libssl.so.3"}, newDefault, ""},
	{"no OpenSSL of a version", "", []string{"OSSL_LIBRARY=9"}, newDefault, ""},
	{"OSSL_FIPS with an unknown value", "", []string{"OSSL_FIPS=maybe"}, newDefault, ""},
	{"FIPS mode without a module", "", []string{"OSSL_FIPS=require", "OPENSSL_MODULES=/nonexistent"}, newDefault, "3.0"},
}

func newDefault() error {
	_, err := ossl.NewContext(nil)
	return err
}

// TestHostFaults starts a process for each, because a process reads openssl.cnf and the environment
// only once.
func TestHostFaults(t *testing.T) {
	for _, f := range hostFaults {
		t.Run(f.name, func(t *testing.T) {
			ossltest.UnderPolicy(t, f.conf, func(t *testing.T) {
				if f.from != "" && !ossltest.AtLeast(f.from) {
					return // OpenSSL 1.1.1 has no providers
				}
				checkText(t, rowOf(t, f.name)[0], f.of())
			}, f.env...)
		})
	}
}

// TestRowsAreProvoked: every row belongs to a mistake above, except the row for programs without
// cgo, which TestWithoutCgo checks.
func TestRowsAreProvoked(t *testing.T) {
	known := map[string]bool{"a program built without cgo": true, "a program that is linked statically": true, // ci/static
		"the server has no secure renegotiation": true}
	for _, m := range append(serverMistakes[:len(serverMistakes):len(serverMistakes)], clientMistakes...) {
		known[m.name] = true
	}
	for _, f := range faults() {
		known[f.name] = true
	}
	for _, f := range hostFaults {
		known[f.name] = true
	}
	for name := range rows() {
		if !known[name] {
			t.Errorf("docs/ERRORS.md has a row that no test provokes: %s", name)
		}
	}
	for name := range known {
		rowOf(t, name)
	}
}
