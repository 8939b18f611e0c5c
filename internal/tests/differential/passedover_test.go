//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialPassedOver: numbers that crypto/tls passes over do no harm beside others.
func TestDifferentialPassedOver(t *testing.T) {
	const unknown, signaling = 0x1234, 0x00ff // RFC 5746
	signatures := func(cert tls.Certificate, ids ...tls.SignatureScheme) func(*tls.Config) {
		cert.SupportedSignatureAlgorithms = ids
		return tlstest.Certificates(cert)
	}
	for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
		certificate := tlstest.ClientCert
		if role == tlstest.ServerRole {
			certificate = tlstest.ServerCert
		}
		for name, edit := range map[string]func(*tls.Config){
			"CipherSuites": tlstest.Suites(tls.TLS_FALLBACK_SCSV, signaling, unknown, 0, tls.TLS_AES_128_GCM_SHA256,
				tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
			"CurvePreferences": tlstest.Curves(unknown, 0, tls.CurveP256, tls.CurveP256),
			"MaxVersion":       func(c *tls.Config) { c.MaxVersion = tls.VersionTLS13 + 1 },
			"NextProtos":       tlstest.Protocols("a", "a", "b"),
			"ECDSA signatures": signatures(certificate(tlstest.P256), unknown, 0, tls.ECDSAWithSHA1, tls.ECDSAWithP256AndSHA256),
			"RSA signatures": signatures(certificate(tlstest.RSA2048), unknown, tls.PKCS1WithSHA1, tls.PSSWithSHA256,
				tls.PKCS1WithSHA256, tls.PSSWithSHA256),
		} {
			for _, version := range tlstest.Versions {
				t.Run(tlstest.VersionName(version)+"/"+string(role)+"/"+name, func(t *testing.T) {
					edits := map[tlstest.Role][]func(*tls.Config){
						tlstest.ClientRole: {tlstest.Protocols("b"), tlstest.Certificates(certificate(tlstest.P256))},
						tlstest.ServerRole: {tlstest.Protocols("b"), tlstest.AskClient(tls.RequestClientCert)},
					}
					edits[role] = append(edits[role], edit)
					other := tlstest.ClientRole
					if role == other {
						other = tlstest.ServerRole
					}
					edits[other] = append(edits[other], tlstest.Only(version))
					mustPass(t, differ(t, tlstest.Case{Client: tlstest.ClientWith(edits[tlstest.ClientRole]...),
						Server: tlstest.ServerWith(edits[tlstest.ServerRole]...)}))
				})
			}
		}
	}
}
