//go:build cgo || ossl_nocgo

package psk

import (
	"crypto/tls"
	"errors"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestPSKUnderPolicy: a host's policy on suites holds for those with pre-shared keys.
func TestPSKUnderPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		policy  string
		refused bool
		suite   uint16
	}{
		"default":    {"CipherString = DEFAULT:@SECLEVEL=2", false, 0xccac},
		"none":       {"CipherString = DEFAULT:!PSK", true, 0},
		"one":        {"CipherString = ECDHE-PSK-AES128-CBC-SHA256:ECDHE-RSA-AES128-GCM-SHA256", false, 0xc037},
		"of TLS 1.3": {"Ciphersuites = TLS_CHACHA20_POLY1305_SHA256", false, 0xccac},
	} {
		t.Run(name, func(t *testing.T) {
			ossltest.UnderPolicy(t, ossltest.PolicyMain+test.policy+"\n", func(t *testing.T) {
				for _, version := range tlstest.Versions {
					server, err := ossl.NewContext(only(version), knowing(key256))
					var e *ossl.ConfigError
					if refused := test.refused && version == tls.VersionTLS12; refused != (errors.As(err, &e) && e.Field == "WithPSKLookup") {
						t.Fatalf("%s: %v", tls.VersionName(version), err)
					} else if refused {
						continue
					}
					client, err := ossl.NewContext(only(version), offering(key256), ossl.WithoutHostPolicy())
					if err != nil {
						t.Fatal(err)
					}
					c, _ := connect(t, client, server, key256.Identity)
					if suite := c.ConnectionState().CipherSuite; version == tls.VersionTLS12 && suite != test.suite {
						t.Errorf("suite %#04x", suite)
					}
				}
			})
		})
	}
}
