//go:build cgo || ossl_nocgo

package differential

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// expect compares a case. With crypto/tls alone it must succeed if good is true, and fail
// otherwise.
func expect(t *testing.T, good bool, c tlstest.Case) {
	t.Helper()
	if o := differ(t, c); good {
		mustPass(t, o)
	} else {
		mustFail(t, o)
	}
}

// TestDifferentialCertificates offers every specimen on both sides.
func TestDifferentialCertificates(t *testing.T) {
	defer checkStale(t)
	for _, version := range tlstest.Versions {
		for _, s := range tlstest.Specimens() {
			t.Run(tlstest.VersionName(version)+"/server/"+s.Name, func(t *testing.T) {
				expect(t, s.Good, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(version)),
					Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Certificates(s.Cert(tlstest.ServerRole))),
				})
			})
			t.Run(tlstest.VersionName(version)+"/client/"+s.Name, func(t *testing.T) {
				expect(t, s.Good || s.ServerOnly, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(version), tlstest.SendCertificate(s.Cert(tlstest.ClientRole))),
					Server: tlstest.ServerWith(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert)),
				})
			})
		}
	}
}

// TestDifferentialVerifyOptions compares the effects of the fields that control a client's
// verification.
func TestDifferentialVerifyOptions(t *testing.T) {
	defer checkStale(t)
	expired := tlstest.SpecimenNamed("expired").Cert(tlstest.ServerRole)
	byIP := tlstest.New(tlstest.Options{Names: []string{"127.0.0.1", "::1"}})
	wildcard := tlstest.New(tlstest.Options{Names: []string{"*.wild.test"}})
	name := func(n string) func(*tls.Config) { return func(c *tls.Config) { c.ServerName = n } }
	clock := func(d time.Duration) func(*tls.Config) {
		return func(c *tls.Config) { c.Time = func() time.Time { return time.Now().Add(d) } }
	}
	insecure := func(c *tls.Config) { c.InsecureSkipVerify = true }
	roots := func(p *x509.CertPool) func(*tls.Config) { return func(c *tls.Config) { c.RootCAs = p } }
	both := tlstest.CA().Pool()
	both.AddCert(tlstest.OtherCA().Cert)
	for _, version := range tlstest.Versions {
		for _, test := range []struct {
			name   string
			good   bool
			cert   tls.Certificate
			client []func(*tls.Config)
		}{
			{"other name asked for", false, tlstest.ServerCert(tlstest.P256), opts(name(tlstest.OtherName))},
			{"IP address", true, byIP, opts(name("127.0.0.1"))},
			{"IPv6 address", true, byIP, opts(name("::1"))},
			{"IPv6 address in brackets", true, byIP, opts(name("[::1]"))},
			{"other IP address", false, byIP, opts(name("127.0.0.2"))},
			{"wildcard", true, wildcard, opts(name("a.wild.test"))},
			{"wildcard two levels down", false, wildcard, opts(name("a.b.wild.test"))},
			{"trailing dot", true, tlstest.ServerCert(tlstest.P256), opts(name(tlstest.ServerName + "."))},
			{"upper case", true, tlstest.ServerCert(tlstest.P256), opts(name("SERVER.TEST"))},
			{"no name and no InsecureSkipVerify", false, tlstest.ServerCert(tlstest.P256), opts(name(""))},
			{"no name but InsecureSkipVerify", true, tlstest.ServerCert(tlstest.P256), opts(name(""), insecure)},
			{"InsecureSkipVerify", true, expired, opts(insecure)},
			{"a clock in the certificate's past", true, expired, opts(clock(-36 * time.Hour))},
			{"a clock beyond its end", false, tlstest.ServerCert(tlstest.P256), opts(clock(100 * time.Hour))},
			{"system roots", false, tlstest.ServerCert(tlstest.P256), opts(roots(nil))},
			{"an empty pool", false, tlstest.ServerCert(tlstest.P256), opts(roots(x509.NewCertPool()))},
			{"two roots", true, tlstest.ServerCert(tlstest.P256), opts(roots(both))},
		} {
			t.Run(tlstest.VersionName(version)+"/"+test.name, func(t *testing.T) {
				expect(t, test.good, tlstest.Case{
					Client: tlstest.ClientWith(append(test.client, tlstest.Only(version))...),
					Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Certificates(test.cert)),
				})
			})
		}
	}
}

func opts(edits ...func(*tls.Config)) []func(*tls.Config) { return edits }

var authModes = []struct {
	name string
	mode tls.ClientAuthType
}{
	{"none", tls.NoClientCert},
	{"request", tls.RequestClientCert},
	{"require any", tls.RequireAnyClientCert},
	{"verify if given", tls.VerifyClientCertIfGiven},
	{"require and verify", tls.RequireAndVerifyClientCert},
}

// TestDifferentialClientAuth compares all modes of asking a client for its certificate with all
// answers.
func TestDifferentialClientAuth(t *testing.T) {
	defer checkStale(t)
	client := func(name string) tls.Certificate { return tlstest.SpecimenNamed(name).Cert(tlstest.ClientRole) }
	for _, version := range tlstest.Versions {
		for _, mode := range authModes {
			required := mode.mode == tls.RequireAnyClientCert || mode.mode == tls.RequireAndVerifyClientCert
			verified := mode.mode == tls.VerifyClientCertIfGiven || mode.mode == tls.RequireAndVerifyClientCert
			for _, answer := range []struct {
				name   string
				good   bool
				client []func(*tls.Config)
			}{
				{"no certificate", !required, nil},
				{"an empty one", !required, opts(tlstest.SendCertificate(tls.Certificate{}))},
				{"good", true, opts(tlstest.Certificates(client("good")))},
				{"good RSA", true, opts(tlstest.Certificates(tlstest.ClientCert(tlstest.RSA2048)))},
				{"good Ed25519", true, opts(tlstest.Certificates(tlstest.ClientCert(tlstest.Ed25519)))},
				{"chain", true, opts(tlstest.Certificates(client("chain")))},
				{"unknown CA", !verified, opts(tlstest.SendCertificate(client("unknown CA")))},
				{"expired", !verified, opts(tlstest.SendCertificate(client("expired")))},
				{"self-signed", !verified, opts(tlstest.SendCertificate(client("self-signed")))},
				// Kept back by the client: the server's list of authorities doesn't have its
				// issuer.
				{"none that the server would take", !required, opts(tlstest.Certificates(client("unknown CA")))},
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", tlstest.VersionName(version), mode.name, answer.name), func(t *testing.T) {
					expect(t, answer.good || mode.mode == tls.NoClientCert, tlstest.Case{
						Client: tlstest.ClientWith(append(answer.client, tlstest.Only(version))...),
						Server: tlstest.ServerWith(tlstest.Only(version), tlstest.AskClient(mode.mode)),
					})
				})
			}
			t.Run(fmt.Sprintf("%s/%s/nobody trusted", tlstest.VersionName(version), mode.name), func(t *testing.T) {
				expect(t, !verified, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(version), tlstest.SendCertificate(client("good"))),
					Server: tlstest.ServerWith(tlstest.Only(version), func(c *tls.Config) {
						c.ClientAuth, c.ClientCAs = mode.mode, x509.NewCertPool()
					}),
				})
			})
			t.Run(fmt.Sprintf("%s/%s/system roots", tlstest.VersionName(version), mode.name), func(t *testing.T) {
				expect(t, !verified, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(version), tlstest.SendCertificate(client("good"))),
					Server: tlstest.ServerWith(tlstest.Only(version), func(c *tls.Config) { c.ClientAuth = mode.mode }),
				})
			})
		}
	}
}

// TestDifferentialSelection compares which of several certificates a side chooses.
func TestDifferentialSelection(t *testing.T) {
	defer checkStale(t)
	ec, rsa, ed := tlstest.ServerCert(tlstest.P256), tlstest.ServerCert(tlstest.RSA2048), tlstest.ServerCert(tlstest.Ed25519)
	other := tlstest.New(tlstest.Options{Names: []string{tlstest.OtherName}})
	wildcard := tlstest.New(tlstest.Options{Names: []string{"*.wild.test"}, Kind: tlstest.RSA2048})
	p384 := tlstest.New(tlstest.Options{Kind: tlstest.P384})
	ecSuite, rsaSuite := tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
	name := func(n string) func(*tls.Config) { return func(c *tls.Config) { c.ServerName = n } }
	anyone := func(c *tls.Config) { c.InsecureSkipVerify = true }
	for _, version := range tlstest.Versions {
		for _, test := range []struct {
			name   string
			good   bool
			client []func(*tls.Config)
			certs  []tls.Certificate
		}{
			{"by SNI, first", true, opts(name(tlstest.ServerName)), []tls.Certificate{ec, other, wildcard}},
			{"by SNI, second", true, opts(name(tlstest.OtherName)), []tls.Certificate{ec, other, wildcard}},
			{"by SNI, wildcard", true, opts(name("x.wild.test")), []tls.Certificate{ec, other, wildcard}},
			{"by SNI, no match", true, opts(name("nobody.test"), anyone), []tls.Certificate{ec, other, wildcard}},
			{"no SNI", true, opts(name(""), anyone), []tls.Certificate{other, ec}},
			{"SNI is an IP address", true, opts(name("127.0.0.1"), anyone), []tls.Certificate{other, ec}},
			{"two kinds, RSA first", true, nil, []tls.Certificate{rsa, ec}},
			{"two kinds, ECDSA first", true, nil, []tls.Certificate{ec, rsa}},
			{"three kinds, Ed25519 first", true, nil, []tls.Certificate{ed, rsa, ec}},
			{"two curves", true, nil, []tls.Certificate{p384, ec}},
			{"client has ECDSA suites only", true, opts(tlstest.Suites(ecSuite)), []tls.Certificate{rsa, ec}},
			{"client has RSA suites only", true, opts(tlstest.Suites(rsaSuite)), []tls.Certificate{ec, ed, rsa}},
			{"no certificate", false, nil, nil},
		} {
			t.Run(tlstest.VersionName(version)+"/"+test.name, func(t *testing.T) {
				expect(t, test.good, tlstest.Case{
					Client: tlstest.ClientWith(append(test.client, tlstest.Only(version))...),
					Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Certificates(test.certs...)),
				})
			})
		}
		byOther := tlstest.New(tlstest.Options{Issuer: tlstest.OtherCA(), Names: []string{tlstest.ClientName}})
		ours := tlstest.ClientCert(tlstest.Ed25519)
		for _, test := range []struct {
			name  string
			certs []tls.Certificate
		}{
			{"client, by authority", []tls.Certificate{byOther, ours}},
			{"client, first of two", []tls.Certificate{ours, tlstest.ClientCert(tlstest.P256)}},
			{"client, by authority of its intermediate", []tls.Certificate{
				byOther, tlstest.SpecimenNamed("chain").Cert(tlstest.ClientRole)}},
		} {
			t.Run(tlstest.VersionName(version)+"/"+test.name, func(t *testing.T) {
				expect(t, true, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(version), tlstest.Certificates(test.certs...)),
					Server: tlstest.ServerWith(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert)),
				})
			})
		}
	}
}

// TestDifferentialStaple compares a client's state for a certificate's OCSP staple and
// timestamps.
func TestDifferentialStaple(t *testing.T) {
	defer checkStale(t)
	for _, version := range tlstest.Versions {
		t.Run(tlstest.VersionName(version)+"/timestamps", func(t *testing.T) {
			cert := tlstest.ServerCert(tlstest.P256)
			cert.SignedCertificateTimestamps = [][]byte{bytes.Repeat([]byte{7}, 47), []byte("another")}
			expect(t, true, tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version)),
				Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Certificates(cert))})
		})
		t.Run(tlstest.VersionName(version)+"/staple", func(t *testing.T) {
			cert := tlstest.ServerCert(tlstest.P256)
			// OCSPResponse with status tryLater and nothing else (RFC 6960, section 4.2.1).
			cert.OCSPStaple = []byte{0x30, 0x03, 0x0a, 0x01, 0x03}
			expect(t, true, tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version)),
				Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Certificates(cert)),
				Talk: func(role tlstest.Role, c tlstest.Conn) (string, error) {
					heard, err := tlstest.Echo(role, c)
					return fmt.Sprintf("%s %x", heard, c.OCSPResponse()), err
				}})
		})
	}
}
