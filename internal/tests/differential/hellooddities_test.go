//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialLegacyVersion sends servers ClientHellos whose legacy_version is above TLS 1.2's, without
// supported_versions: RFC 8446, section 4.2.1, requires servers to choose TLS 1.2 then.
func TestDifferentialLegacyVersion(t *testing.T) {
	defer checkStale(t)
	for _, version := range []uint16{0x0304, 0x0305, 0x030f, 0x0400, 0xffff} {
		for kind, certs := range map[string][]tls.Certificate{
			"one":   {tlstest.ServerCert(tlstest.P256)},
			"first": {tlstest.ServerCert(tlstest.P256), tlstest.ServerCert(tlstest.RSA2048)},
			"last":  {tlstest.ServerCert(tlstest.RSA2048), tlstest.ServerCert(tlstest.P256)},
		} {
			t.Run(fmt.Sprintf("%#04x/%s", version, kind), func(t *testing.T) {
				o := differIn(t, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS12), func(c *tls.Config) {
						c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
					}),
					Server: tlstest.ServerWith(tlstest.Certificates(certs...)),
					ClientFault: tlstest.EditHello(func(fixed, extensions []byte) ([]byte, []byte) {
						binary.BigEndian.PutUint16(fixed, version)
						var left []byte
						for len(extensions) >= 4 {
							n := 4 + int(binary.BigEndian.Uint16(extensions[2:]))
							if binary.BigEndian.Uint16(extensions) != tlstest.ExtSupportedVersions {
								left = append(left, extensions[:n]...)
							}
							extensions = extensions[n:]
						}
						return fixed, left
					}),
				}, against(tlstest.ServerRole)...)
				// ClientHelloInfo.SupportedVersions has TLS 1.3 too, so that the first certificate, which no suite fits, is taken.
				if refused := strings.Contains(fmt.Sprint(o.Server.HandshakeErr), "no cipher suite"); refused != (kind == "last") {
					t.Errorf("crypto/tls: %v", o.Server.HandshakeErr)
				}
			})
		}
	}
}

// TestDifferentialRetrySuite gives clients a HelloRetryRequest that names a TLS 1.2 suite. libssl
// answers it, as docs/COMPATIBILITY.md describes, and refuses the ServerHello after it with the
// same alert as crypto/tls, which does not answer the HelloRetryRequest.
func TestDifferentialRetrySuite(t *testing.T) {
	defer checkStale(t)
	for _, suite := range []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384} {
		t.Run(tlstest.VersionName(tls.VersionTLS13)+"/"+tls.CipherSuiteName(suite), func(t *testing.T) {
			c := tlstest.Case{
				Client: tlstest.ClientWith(func(c *tls.Config) {
					c.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
				}),
				Server: tlstest.ServerWith(tlstest.Only(tls.VersionTLS13), func(c *tls.Config) {
					c.CurvePreferences = []tls.CurveID{tls.CurveP256}
				}),
				ServerFault: func() tlstest.Fault {
					return tlstest.Records(func(i int, record []byte) [][]byte {
						if i == 0 {
							at := 5 + 4 + 2 + 32
							at += 1 + int(record[at]) // session id
							binary.BigEndian.PutUint16(record[at:], suite)
						}
						return [][]byte{record}
					})
				},
			}
			differIn(t, c, against(tlstest.ClientRole)...)
			for i, p := range against(tlstest.ClientRole) {
				records, _ := tlstest.SplitRecords(tlstest.Run(p, c).Recording.Bytes(tlstest.ClientRole))
				if hellos := len(tlstest.Messages(records)); hellos != i+1 {
					t.Errorf("%s: the client sent %d ClientHellos, want %d", p.Name(), hellos, i+1)
				}
			}
		})
	}
}
