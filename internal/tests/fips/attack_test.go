//go:build cgo || ossl_nocgo

package fips

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestFIPSDropIn sets and unsets the environment variable for FIPS mode between calls of the
// drop-in functions: a connection is in FIPS mode if the variable was set when it was made, even if
// its configuration was used before without FIPS mode.
func TestFIPSDropIn(t *testing.T) {
	ossltest.NeedFIPS(t)
	if ossltest.RequireFIPS {
		t.Skip("OSSL_FIPS=require: there is nothing outside of FIPS mode")
	}
	cc := tlstest.ClientConfig(tlstest.Only(tls.VersionTLS12), func(c *tls.Config) {
		c.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
		c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}
	})
	sc := tlstest.ServerConfig(tlstest.Only(tls.VersionTLS12), func(c *tls.Config) { c.CurvePreferences = cc.CurvePreferences })
	connect := func() (*ossl.Conn, error) {
		a, b := tlstest.Buffered()
		c, s := ossl.Client(a, cc), tls.Server(b, sc)
		t.Cleanup(func() { c.Close() })
		go s.Handshake()
		return c, c.Handshake()
	}
	before, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OSSL_FIPS", "require")
	var refused *ossl.ConfigError
	if _, err := connect(); !errors.As(err, &refused) {
		t.Errorf("a configuration that is not for FIPS mode: %v", err)
	}
	if m := before.FIPS(); m != nil {
		t.Errorf("%s is said to have been done by %v", tls.CipherSuiteName(before.ConnectionState().CipherSuite), m)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			conn, _ := tlstest.Buffered()
			if ossl.Client(conn, &tls.Config{ServerName: "x"}).FIPS() == nil {
				t.Error("a connection is not in FIPS mode")
			}
		})
	}
	all.Wait()
	t.Setenv("OSSL_FIPS", "")
	if _, err := connect(); err != nil {
		t.Errorf("nobody asks for FIPS mode any more: %v", err)
	}
}

// TestFIPSSharedClientCache checks that a session is resumed only in the mode in which it was
// agreed on, FIPS mode or not.
func TestFIPSSharedClientCache(t *testing.T) {
	ossltest.NeedFIPS(t)
	if ossltest.RequireFIPS {
		t.Skip("OSSL_FIPS=require: there is nothing outside of FIPS mode")
	}
	for _, version := range tlstest.Versions {
		cc := tlstest.ClientConfig(tlstest.Only(version))
		cc.ClientSessionCache = tls.NewLRUClientSessionCache(4)
		fc := cc.Clone()
		ossltest.Approved(fc)
		server := tlstest.StdServer(tlstest.ServerConfig(tlstest.Only(version),
			func(c *tls.Config) { c.SessionTicketsDisabled = false }))
		plain, fips := ossltest.ClientOf(ossltest.NewPlainContext(t, cc)), ossltest.ClientOf(ossltest.NewPlainContext(t, fc,
			ossltest.FIPSOptions()...))
		for i, step := range []struct {
			client tlstest.End
			resume bool
		}{{plain, false}, {fips, false}, {fips, true}, {plain, false}, {plain, true}} {
			if state, _ := tlstest.Visit(t, step.client, server); state.DidResume != step.resume {
				t.Errorf("%s, connection %d: DidResume is %v", tls.VersionName(version), i+1, state.DidResume)
			}
		}
	}
}

// TestFIPSWeakPeers checks that even a peer that isn't verified must sign with a key that is
// allowed.
func TestFIPSWeakPeers(t *testing.T) {
	ossltest.NeedFIPS(t)
	for _, version := range tlstest.Versions {
		client := ossltest.FIPSClient(t, tlstest.Only(version), tlstest.InsecureSkipVerify)
		weak := tlstest.Certificates(tlstest.ServerCert(tlstest.RSA1024))
		if _, _, err := tlstest.TryVisit(ossltest.ClientOf(client),
			tlstest.StdServer(tlstest.ServerConfig(tlstest.Only(version), weak))); err == nil {
			t.Errorf("%s: a client with InsecureSkipVerify takes RSA-1024", tls.VersionName(version))
		}
		server := ossltest.FIPSServer(t, tlstest.Only(version), tlstest.AskClient(tls.RequireAnyClientCert))
		weak = tlstest.Certificates(tlstest.ClientCert(tlstest.RSA1024))
		if _, _, err := tlstest.TryVisit(tlstest.StdClient(tlstest.ClientConfig(tlstest.Only(version), weak)),
			ossltest.ServerOf(server)); err == nil {
			t.Errorf("%s: a server with RequireAnyClientCert takes RSA-1024", tls.VersionName(version))
		}
	}
}

// TestFIPSExcludedWildcard: a wildcard does not evade a constraint.
func TestFIPSExcludedWildcard(t *testing.T) {
	ossltest.NeedFIPS(t)
	root := issue(t, "root xw", nil, ca)
	mid := issue(t, "mid xw", root, and(ca, func(c *template) {
		c.PermittedDNSDomainsCritical = true
		c.ExcludedDNSDomains = []string{"admin.x.test"}
	}))
	leaf := issue(t, "leaf", mid, and(tlsLeaf, names("*.x.test")))
	cert := tls.Certificate{Certificate: [][]byte{leaf.cert.Raw, mid.cert.Raw}, PrivateKey: leaf.key}
	ctx := ossltest.NewPlainContext(t, tlstest.ClientConfig(ossltest.Approved,
		func(c *tls.Config) { c.ServerName = "admin.x.test" }), ossl.WithFIPS(),
		ossl.WithRoots(ossl.Roots{Certificates: []*x509.Certificate{root.cert}}))
	_, _, err := tlstest.TryVisit(ossltest.ClientOf(ctx), tlstest.StdServer(tlstest.ServerConfig(tlstest.Certificates(cert))))
	if err == nil {
		t.Error("a CA that must not sign for admin.x.test has done so by *.x.test, and is believed")
	}
}

// TestFIPSSHA224: a certificate has a signature of 128 bits or more.
func TestFIPSSHA224(t *testing.T) {
	ossltest.NeedFIPS(t)
	root := issue(t, "root 224", nil, ca)
	leaf := issue(t, "leaf", root, tlsLeaf)
	var c struct {
		TBS asn1.RawValue
		Alg asn1.RawValue
		Sig asn1.BitString
	}
	old, nw := []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2}, []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 1}
	raw := bytes.ReplaceAll(leaf.cert.Raw, old, nw)
	if _, err := asn1.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum224(c.TBS.FullBytes)
	sig, _ := ecdsa.SignASN1(rand.Reader, root.key, sum[:])
	c.Sig = asn1.BitString{Bytes: sig, BitLength: 8 * len(sig)}
	der, err := asn1.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cert := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: leaf.key}
	ctx := ossltest.NewPlainContext(t, tlstest.ClientConfig(ossltest.Approved), ossl.WithFIPS(),
		ossl.WithRoots(ossl.Roots{Certificates: []*x509.Certificate{root.cert}}))
	cs, _, err := tlstest.TryVisit(ossltest.ClientOf(ctx), tlstest.StdServer(tlstest.ServerConfig(tlstest.Certificates(cert))))
	if err == nil {
		t.Error("SHA-224:", cs.VerifiedChains[0][0].SignatureAlgorithm)
	}
}

// TestFIPSNothingOfTheWorkingDirectory puts a module and its configuration into the working
// directory, and names the configuration without a path.
func TestFIPSNothingOfTheWorkingDirectory(t *testing.T) {
	if strings.HasPrefix(ossltest.Version(), "1.") {
		t.Skipf("OpenSSL %s loads no module for FIPS mode", ossltest.Version())
	}
	dir := t.TempDir()
	// If the module can't be loaded for another reason than that it is missing, the file in the
	// working directory was tried.
	text := []byte("[fips_sect]\nmodule = " + dir + "/tell.so\n")
	if err := os.WriteFile(filepath.Join(dir, "fipsmodule.cnf"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	old, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chdir(old) })
	if err := os.Chdir(dir); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENSSL_MODULES", filepath.Join(dir, "none"))
	for _, conf := range []string{"", "openssl.cnf", "./openssl.cnf"} {
		t.Setenv("OPENSSL_CONF", conf)
		err := libssl.TryFIPS()
		if err == nil {
			t.Fatal("there is a module in a folder that is not there")
		}
		if file := libssl.FIPSConfiguration(); strings.Contains(file, "tell.so") {
			t.Errorf("OPENSSL_CONF=%q: the module is to be loaded as %s says", conf, file)
		}
	}
	t.Setenv("OPENSSL_CONF", filepath.Join(dir, "openssl.cnf"))
	if !strings.Contains(libssl.FIPSConfiguration(), "tell.so") {
		t.Error("a path does not lead to the file beside it: the test shows nothing")
	}
}
