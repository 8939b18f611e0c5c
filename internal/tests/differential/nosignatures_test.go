//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialNoSignatureAlgorithms sends servers TLS 1.2 ClientHellos without
// signature_algorithms, as very old clients do. They are served with RSA key exchange, which needs
// no signature, if crypto/tls would choose it.
func TestDifferentialNoSignatureAlgorithms(t *testing.T) {
	const serverHelloDone, asking = 14, "asking for a certificate"
	const (
		rsa, rsaCBC  = tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_CBC_SHA
		ecdhe, ecdsa = tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	)
	all := tlstest.Suites(rsa, rsaCBC, ecdhe, ecdsa)
	const (
		signaturesOfCertificates = 50 // RFC 8446, section 4.2.3
		extendedMasterSecret     = 23 // RFC 7627; it depends on the whole ClientHello
	)
	remove := func(more ...uint16) func() tlstest.Fault {
		ids := append(more, tlstest.ExtSignatureAlgorithms, signaturesOfCertificates, extendedMasterSecret)
		return tlstest.EditExtensions(func(id uint16, body []byte) []byte {
			if slices.Contains(ids, id) {
				return nil
			}
			return body
		})
	}
	hello := remove()
	for _, test := range []struct {
		name           string
		good           bool // crypto/tls serves the client
		client, server func(*tls.Config)
		fault          func() tlstest.Fault
	}{
		{"RSA", true, tlstest.Suites(rsa), tlstest.Suites(rsa), hello},
		{"RSA with CBC", true, tlstest.Suites(rsaCBC), all, hello},
		{"RSA is not configured", false, all, tlstest.Suites(ecdhe), hello},
		{"RSA is not a default", false, tlstest.Suites(rsa), tlstest.Suites(), hello},
		{"all", false, all, all, hello},
		{"ECDHE", false, tlstest.Suites(ecdhe), all, hello},
		{"ECDHE for another key", true, tlstest.Suites(rsa, ecdsa), all, hello},
		{"another group", true, func(c *tls.Config) { all(c); tlstest.Curves(tls.CurveP384)(c) }, all, hello},
		{"no groups", true, all, all, remove(tlstest.ExtSupportedGroups)},
		{asking, true, tlstest.Suites(rsa), func(c *tls.Config) { all(c); tlstest.AskClient(tls.RequestClientCert)(c) }, hello},
	} {
		for _, how := range []string{"one", "two", "GetCertificate", "GetConfigForClient"} {
			t.Run(fmt.Sprintf("TLS1.2/%s/%s", how, test.name), func(t *testing.T) {
				cert := tlstest.ServerCert(tlstest.RSA2048)
				with := func(c *tls.Config) {
					tlstest.Certificates(cert)(c)
					tlstest.Curves(tls.CurveP256)(c)
					test.server(c)
				}
				server := tlstest.ServerWith(with)
				switch how {
				case "two":
					server = tlstest.ServerWith(with, tlstest.Certificates(cert, tlstest.ServerCert(tlstest.P256)))
				case "GetCertificate":
					server = tlstest.ServerWith(with, tlstest.Certificates(), func(c *tls.Config) {
						c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
					})
				case "GetConfigForClient":
					chosen := server()
					server = tlstest.ServerWith(func(c *tls.Config) {
						c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
					})
				}
				c := tlstest.Case{
					Client:      tlstest.ClientWith(tlstest.Only(tls.VersionTLS12), tlstest.Curves(tls.CurveP256), test.client),
					Server:      server,
					ClientFault: test.fault,
				}
				// The suite of a whole flight, or 0.
				served := func(o *tlstest.Outcome) (suite uint16) {
					records, _ := tlstest.SplitRecords(o.Recording.Bytes(tlstest.ServerRole))
					messages := tlstest.Messages(records)
					if n := len(messages); n == 0 || messages[n-1][0] != serverHelloDone {
						return 0
					}
					rest := messages[0][4+2+32:]
					return binary.BigEndian.Uint16(rest[1+rest[0]:])
				}
				p := against(tlstest.ServerRole)
				want, got := tlstest.Run(p[0], c), tlstest.Run(p[1], c)
				if good := served(want) != 0; good != test.good {
					t.Errorf("crypto/tls: %v", want.Server.HandshakeErr)
				}
				if test.name == asking { // SHA-1 would be allowed for the client's signature
					if served(got) != 0 {
						t.Errorf("%#04x, %v", served(got), got.Server.HandshakeErr)
					}
					return
				}
				if served(got) != served(want) {
					t.Errorf("%#04x, %v; crypto/tls %#04x, %v", served(got), got.Server.HandshakeErr, served(want), want.Server.HandshakeErr)
				}
				// The Finished of a client that has sent another ClientHello is wrong, but can be decrypted.
				alert := map[bool]string{true: "2/51", false: want.Server.Alerts}[test.good]
				if got.Server.Alerts != alert && (test.good || ossltest.AtLeast("3.0")) {
					t.Errorf("alert %s, %v; want %s", got.Server.Alerts, got.Server.HandshakeErr, alert)
				}
			})
		}
	}
}
