//go:build (cgo || ossl_nocgo) && linux

package fips

import (
	"crypto/tls"
	"os"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestFIPSUnderPolicy: the host's policy is honoured in FIPS mode too, also if it names algorithms
// that the module lacks.
func TestFIPSUnderPolicy(t *testing.T) {
	ossltest.NeedFIPS(t)
	if strings.HasPrefix(ossltest.Version(), "1.") {
		t.Skipf("OpenSSL %s has no module with a configuration of its own", ossltest.Version())
	}
	conf := ".include " + os.Getenv("OPENSSL_CONF") + "\n[default]\n" + ossltest.PolicyMain +
		"Groups = X25519:P-384\nCiphersuites = TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384\n"
	ossltest.UnderPolicy(t, conf, func(t *testing.T) {
		for _, version := range tlstest.Versions {
			edit := func(c *tls.Config) {
				tlstest.Only(version)(c)
				c.CurvePreferences = nil
			}
			client := ossltest.NewPlainContext(t, tlstest.ClientConfig(ossltest.Approved, edit), ossltest.FIPSOptions()...)
			state, _ := tlstest.Visit(t, ossltest.ClientOf(client),
				tlstest.StdServer(tlstest.ServerConfig(tlstest.Certificates(tlstest.ServerCert(tlstest.RSA2048)))))
			if state.CurveID != tls.CurveP384 || version == tls.VersionTLS13 && state.CipherSuite != tls.TLS_AES_256_GCM_SHA384 {
				t.Errorf("%s: %v, %s", tls.VersionName(version), state.CurveID, tls.CipherSuiteName(state.CipherSuite))
			}
		}
	})
}
