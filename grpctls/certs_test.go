package grpctls_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	serverName = "server.test"
	otherName  = "other.test" // in no server's certificate
)

// must returns v, or panics. It is for functions that fail only if the test is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func newAuthority(name string) *authority {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return &authority{must(x509.ParseCertificate(der)), key}
}

// An authority that both sides trust, and one that neither trusts.
var (
	ca      = sync.OnceValue(func() *authority { return newAuthority("grpctls test root") })
	otherCA = sync.OnceValue(func() *authority { return newAuthority("grpctls other root") })
)

// issue makes a certificate with a P-256 key for serverName and 127.0.0.1, good for both roles,
// changed by edit.
func (a *authority) issue(edit func(*x509.Certificate)) tls.Certificate {
	return a.issueFor(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), edit)
}

func (a *authority) issueFor(key crypto.Signer, edit func(*x509.Certificate)) tls.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "grpctls test"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{serverName},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if edit != nil {
		edit(template)
	}
	der := must(x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: must(x509.ParseCertificate(der))}
}

var goodCert = sync.OnceValue(func() tls.Certificate { return ca().issue(nil) })

var rsaCert = sync.OnceValue(func() tls.Certificate { return ca().issueFor(must(rsa.GenerateKey(rand.Reader, 2048)), nil) })

func expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }

func withURIs(uris ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, uri := range uris {
			c.URIs = append(c.URIs, must(url.Parse(uri)))
		}
	}
}

// clientConfig and serverConfig are the tests' basic configurations: sessions are off on both
// sides, as they are in ossl.
func clientConfig(edits ...func(*tls.Config)) *tls.Config {
	return edited(&tls.Config{RootCAs: ca().pool(), ServerName: serverName}, edits)
}

func serverConfig(edits ...func(*tls.Config)) *tls.Config {
	return edited(&tls.Config{Certificates: []tls.Certificate{goodCert()}, SessionTicketsDisabled: true}, edits)
}

func edited(config *tls.Config, edits []func(*tls.Config)) *tls.Config {
	config.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
	for _, edit := range edits {
		edit(config)
	}
	return config
}

func atMost(version uint16) func(*tls.Config)  { return func(c *tls.Config) { c.MaxVersion = version } }
func atLeast(version uint16) func(*tls.Config) { return func(c *tls.Config) { c.MinVersion = version } }

// mutual makes a server ask for certificates, and gives clients one.
func mutual(server *tls.Config) {
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, ca().pool()
}

func withCert(cert func() tls.Certificate) func(*tls.Config) {
	return func(c *tls.Config) { c.Certificates = []tls.Certificate{cert()} }
}

// writePEM writes a certificate and its key to files.
func writePEM(t testing.TB, cert tls.Certificate) (certFile, keyFile string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", "CERTIFICATE", cert.Certificate[0]),
		write("key.pem", "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(cert.PrivateKey)))
}
