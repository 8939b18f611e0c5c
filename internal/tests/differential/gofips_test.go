//go:build cgo || ossl_nocgo

package differential

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"os"
	"os/exec"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialFips140On: in Go's own FIPS mode, chains with keys that it doesn't allow are
// refused as by crypto/tls, although OpenSSL isn't in FIPS mode. Tests with FIPS in their names
// test OpenSSL's FIPS mode.
func TestDifferentialFips140On(t *testing.T) {
	const env = "OSSL_TEST_GO_FIPS"
	if os.Getenv(env) == "" {
		program := tlstest.Self()
		cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], "-test.run=^TestDifferentialFips140On$", "-test.v")...)
		cmd.Env = append(os.Environ(), env+"=1", "GODEBUG=fips140=on", "OSSL_FIPS=")
		out, err := cmd.CombinedOutput()
		if bytes.Contains(out, []byte("FIPS 140-3 mode is incompatible with ASAN")) {
			t.Skip("a build with ASan has no FIPS mode of Go")
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer := tlstest.New(tlstest.Options{Key: key, Edit: func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
	}})
	below := func(names ...string) tls.Certificate {
		return tlstest.New(tlstest.Options{Names: names, Issuer: &tlstest.Authority{Cert: issuer.Leaf, Key: key},
			Chain: []*x509.Certificate{issuer.Leaf}})
	}
	for _, version := range tlstest.Versions {
		only, curve := tlstest.Only(version), tlstest.Curves(tls.CurveP256)
		ask := tlstest.AskClient(tls.RequireAndVerifyClientCert)
		for name, c := range map[string]tlstest.Case{
			"server": {Client: tlstest.ClientWith(only, curve),
				Server: tlstest.ServerWith(only, curve, tlstest.Certificates(below(tlstest.ServerName)))},
			"client": {Client: tlstest.ClientWith(only, curve, tlstest.Certificates(below(tlstest.ClientName))),
				Server: tlstest.ServerWith(only, curve, ask)},
			"allowed": {Client: tlstest.ClientWith(only, curve, tlstest.Certificates(tlstest.ClientCert(tlstest.P256))),
				Server: tlstest.ServerWith(only, curve, ask)},
		} {
			t.Run(tlstest.VersionName(version)+"/"+name, func(t *testing.T) {
				got := differ(t, c)
				refused := got.Client.HandshakeErr != nil || got.Server.HandshakeErr != nil
				if refused != (name != "allowed") {
					t.Errorf("client %v, server %v", got.Client.HandshakeErr, got.Server.HandshakeErr)
				}
			})
		}
	}
}
