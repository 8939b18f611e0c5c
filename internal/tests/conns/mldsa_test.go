//go:build cgo || ossl_nocgo

package conns

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// requiredForMLDSA returns the part of an error that names the version that ML-DSA requires, or ""
// if Go and OpenSSL have it.
func requiredForMLDSA() string {
	switch {
	case !libssl.GoHasMLDSA:
		return "requires Go 1.27"
	case !ossltest.AtLeast("3.5"):
		return "requires OpenSSL 3.5"
	}
	return ""
}

// refusedMLDSA checks that a configuration is refused, with a field and a reason.
func refusedMLDSA(t *testing.T, config *tls.Config, field, reason string, opts ...ossl.Option) {
	t.Helper()
	var refused *ossl.ConfigError
	_, err := ossl.NewContext(config, append(ossltest.AsTests(), opts...)...)
	if !errors.As(err, &refused) || refused.Field != field || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %v, want a ConfigError for %s with %q", err, field, reason)
	}
}

// TestMLDSARequires: if Go or OpenSSL has no ML-DSA, certificates and algorithms are refused, and
// the errors name the required version.
func TestMLDSARequires(t *testing.T) {
	requires := requiredForMLDSA()
	if requires == "" {
		t.Skip("Go and OpenSSL have ML-DSA; OpenSSL before 3.5 has not")
	}
	text, err := os.ReadFile("../../../keys/testdata/mldsa/cert.pem")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	// Before Go 1.27, crypto/tls loads no such pair, but a program can make one.
	cert := tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: tlstest.Key(tlstest.P256, "leaf")}
	refusedMLDSA(t, tlstest.ServerConfig(tlstest.Certificates(cert)), "Certificates", "ML-DSA-44 "+requires)
	if !ossltest.InFIPS {
		refusedMLDSA(t, tlstest.ClientConfig(), "WithSignatureAlgorithms", "ML-DSA-65 "+requires,
			ossl.WithSignatureAlgorithms(tls.PSSWithSHA256, libssl.MLDSA65))
	}
	limited := tlstest.ServerCert(tlstest.P256)
	limited.SupportedSignatureAlgorithms = []tls.SignatureScheme{libssl.MLDSA87}
	refusedMLDSA(t, tlstest.ServerConfig(tlstest.Certificates(limited)), "Certificates", "ML-DSA-87 "+requires)
}

// TestDefaultSignatures: a client offers the signature algorithms that crypto/tls offers, in its
// order, except those that the library lacks.
func TestDefaultSignatures(t *testing.T) {
	offered := func(impl tlstest.Impl, version uint16) (schemes []tls.SignatureScheme) {
		tlstest.Run(tlstest.Pairing{Client: impl, Server: tlstest.Std}, tlstest.Case{
			Client: tlstest.ClientWith(func(c *tls.Config) { c.MaxVersion = version }),
			Server: tlstest.ServerWith(func(c *tls.Config) {
				c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
					schemes = hello.SignatureSchemes
					return nil, nil
				}
			}),
		})
		return schemes
	}
	for _, version := range tlstest.Versions {
		want := offered(tlstest.Std, version)
		mldsa := slices.ContainsFunc(want, libssl.IsMLDSA)
		if mldsa != (libssl.GoHasMLDSA && version == tls.VersionTLS13) {
			t.Errorf("crypto/tls offers %v up to %s", want, tls.VersionName(version))
		}
		if !ossltest.AtLeast("3.5") {
			want = slices.DeleteFunc(want, libssl.IsMLDSA)
		}
		if ossltest.InFIPS {
			continue // SHA-1 is left out there
		}
		if got := offered(ossltest.UnderTest, version); !slices.Equal(got, want) {
			t.Errorf("up to %s: %v, crypto/tls %v", tls.VersionName(version), got, want)
		}
	}
}
