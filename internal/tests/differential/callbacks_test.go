//go:build cgo || ossl_nocgo

package differential

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// noteVerify sets one of the two callbacks that verify. The callback notes its arguments and
// returns verdict.
func noteVerify(calls *tlstest.Calls, side tlstest.Role, callback string, verdict error) func(*tls.Config) {
	return func(c *tls.Config) {
		if callback == "VerifyConnection" {
			c.VerifyConnection = func(state tls.ConnectionState) error {
				calls.Add(side, "VerifyConnection(%s)", tlstest.DescribeState(state))
				return verdict
			}
			return
		}
		c.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error {
			var got []*x509.Certificate
			for _, der := range raw {
				cert, err := x509.ParseCertificate(der)
				if err != nil {
					return err
				}
				got = append(got, cert)
			}
			text := ""
			for _, chain := range chains {
				text += tlstest.CertNames(chain)
			}
			calls.Add(side, "VerifyPeerCertificate(%s, %s)", tlstest.CertNames(got), text)
			return verdict
		}
	}
}

// TestDifferentialVerifyCallbacks compares the arguments of VerifyPeerCertificate and
// VerifyConnection, when they are called, and the outcome of a refusal.
func TestDifferentialVerifyCallbacks(t *testing.T) {
	defer checkStale(t)
	unknown := tlstest.SpecimenNamed("unknown CA")
	var calls tlstest.Calls
	for _, version := range tlstest.Versions {
		for _, callback := range []string{"VerifyPeerCertificate", "VerifyConnection"} {
			for _, verdict := range []error{nil, tlstest.ErrDenied} {
				insecure := func(c *tls.Config) { c.InsecureSkipVerify = true }
				// A server calls VerifyPeerCertificate only if it has asked for a certificate.
				unasked := verdict == nil || callback == "VerifyPeerCertificate"
				for _, test := range []struct {
					name           string
					side           tlstest.Role
					good           bool
					client, server []func(*tls.Config)
				}{
					{"client/verified", tlstest.ClientRole, verdict == nil, nil, nil},
					{"client/unverified", tlstest.ClientRole, verdict == nil, opts(insecure),
						opts(tlstest.Certificates(unknown.Cert(tlstest.ServerRole)))},
					{"client/distrusted", tlstest.ClientRole, false, nil, opts(tlstest.Certificates(unknown.Cert(tlstest.ServerRole)))},
					{"server/verified", tlstest.ServerRole, verdict == nil, opts(tlstest.Certificates(tlstest.ClientCert(tlstest.P256))),
						opts(tlstest.AskClient(tls.RequireAndVerifyClientCert))},
					{"server/unverified", tlstest.ServerRole, verdict == nil, opts(tlstest.SendCertificate(unknown.Cert(tlstest.ClientRole))),
						opts(tlstest.AskClient(tls.RequireAnyClientCert))},
					{"server/distrusted", tlstest.ServerRole, false, opts(tlstest.SendCertificate(unknown.Cert(tlstest.ClientRole))),
						opts(tlstest.AskClient(tls.VerifyClientCertIfGiven))},
					{"server/none sent", tlstest.ServerRole, verdict == nil, nil, opts(tlstest.AskClient(tls.VerifyClientCertIfGiven))},
					{"server/none asked for", tlstest.ServerRole, unasked, nil, nil},
				} {
					name := fmt.Sprintf("%s/%s/deny=%v/%s", tlstest.VersionName(version), callback, verdict != nil, test.name)
					t.Run(name, func(t *testing.T) {
						watch := noteVerify(&calls, test.side, callback, verdict)
						if test.side == tlstest.ClientRole {
							test.client = append(test.client, watch)
						} else {
							test.server = append(test.server, watch)
						}
						expect(t, test.good, tlstest.Case{
							Client: tlstest.ClientWith(append(test.client, tlstest.Only(version))...),
							Server: tlstest.ServerWith(append(test.server, tlstest.Only(version))...),
							Calls:  &calls,
						})
					})
				}
			}
		}
	}
}

// describeHello prints the parts of a ClientHelloInfo that depend on the client's configuration
// only.
func describeHello(h *tls.ClientHelloInfo) string {
	return fmt.Sprintf("name=%q protocols=%q groups=%d conn=%v ctx=%v", h.ServerName, h.SupportedProtos, h.SupportedCurves,
		h.Conn != nil, h.Context() != nil)
}

// describeHelloFully prints the parts that depend on the client too.
func describeHelloFully(h *tls.ClientHelloInfo) string {
	return fmt.Sprintf("%s versions=%x suites=%x schemes=%d points=%x extensions=%d addr=%v", describeHello(h), h.SupportedVersions,
		h.CipherSuites, h.SignatureSchemes, h.SupportedPoints, h.Extensions, h.Conn.RemoteAddr())
}

// TestDifferentialHelloInfo compares the infos that a server's callbacks get for the same client's
// ClientHello.
func TestDifferentialHelloInfo(t *testing.T) {
	defer checkStale(t)
	var calls tlstest.Calls
	for _, version := range tlstest.Versions {
		for _, client := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
			t.Run(tlstest.VersionName(version)+"/"+client.Name(), func(t *testing.T) {
				c := tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(version), tlstest.Protocols("x", "y")),
					Server: tlstest.ServerWith(func(c *tls.Config) {
						c.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
							calls.Add(tlstest.ServerRole, "GetConfigForClient(%s)", describeHelloFully(h))
							return nil, nil
						}
						c.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
							calls.Add(tlstest.ServerRole, "GetCertificate(%s, supported: %v)", describeHelloFully(h),
								h.SupportsCertificate(&c.Certificates[0]))
							return nil, nil
						}
					}),
					Calls: &calls,
				}
				differIn(t, c, tlstest.Pairing{Client: client, Server: tlstest.Std},
					tlstest.Pairing{Client: client, Server: ossltest.UnderTest})
			})
		}
	}
}

// TestDifferentialGetConfig compares a server's use of the results of GetConfigForClient and
// GetCertificate.
func TestDifferentialGetConfig(t *testing.T) {
	defer checkStale(t)
	other := tlstest.New(tlstest.Options{Names: []string{tlstest.OtherName}})
	insecure := func(c *tls.Config) { c.InsecureSkipVerify = true }
	var calls tlstest.Calls
	config := func(c *tls.Config, err error) func(*tls.Config) {
		return func(outer *tls.Config) {
			outer.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				calls.Add(tlstest.ServerRole, "GetConfigForClient(%s)", describeHello(h))
				return c, err
			}
		}
	}
	cert := func(c *tls.Certificate, err error) func(*tls.Config) {
		return func(outer *tls.Config) {
			outer.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
				calls.Add(tlstest.ServerRole, "GetCertificate(%s)", describeHello(h))
				return c, err
			}
		}
	}
	nothing := tlstest.Certificates()
	good := tlstest.ServerCert(tlstest.RSA2048)
	for _, version := range tlstest.Versions {
		v := tlstest.Only(version)
		otherVersion := tlstest.Only(tls.VersionTLS12 + tls.VersionTLS13 - version)
		for _, test := range []struct {
			name   string
			good   bool
			client []func(*tls.Config)
			server []func(*tls.Config)
		}{
			{"config/nil", true, nil, opts(config(nil, nil))},
			{"config/error", false, nil, opts(config(nil, tlstest.ErrDenied))},
			{"config/other certificate", true, opts(insecure), opts(config(tlstest.ServerConfig(tlstest.Certificates(other)), nil))},
			{"config/no certificate outside", true, nil, opts(nothing, config(tlstest.ServerConfig(), nil))},
			{"config/no certificate inside", false, nil, opts(config(tlstest.ServerConfig(nothing), nil))},
			{"config/other protocols", true, opts(tlstest.Protocols("b")),
				opts(tlstest.Protocols("a"), config(tlstest.ServerConfig(tlstest.Protocols("b")), nil))},
			{"config/no shared protocol", false, opts(tlstest.Protocols("a")),
				opts(tlstest.Protocols("a"), config(tlstest.ServerConfig(tlstest.Protocols("b")), nil))},
			{"config/asks for a certificate", true, opts(tlstest.Certificates(tlstest.ClientCert(tlstest.P256))),
				opts(config(tlstest.ServerConfig(tlstest.AskClient(tls.RequireAndVerifyClientCert)), nil))},
			{"config/asks for a missing certificate", false, nil,
				opts(config(tlstest.ServerConfig(tlstest.AskClient(tls.RequireAndVerifyClientCert)), nil))},
			{"config/version that the client lacks", false, opts(v), opts(config(tlstest.ServerConfig(otherVersion), nil))},
			{"config/version that the outer one lacks", true, opts(v), opts(otherVersion, config(tlstest.ServerConfig(v), nil))},
			{"config/other group", true, nil, opts(config(tlstest.ServerConfig(tlstest.Curves(tls.CurveP384),
				tlstest.Certificates(good)), nil))},
			{"config/and its GetCertificate", true, nil,
				opts(config(tlstest.ServerConfig(nothing, cert(&good, nil)), nil))},
			{"config/inner callback is not called", true, nil,
				opts(config(tlstest.ServerConfig(config(nil, tlstest.ErrDenied)), nil))},
			{"certificate/other", true, nil, opts(nothing, cert(&good, nil))},
			{"certificate/instead of the list", true, nil, opts(cert(&good, nil))},
			{"certificate/nil, list", true, nil, opts(cert(nil, nil))},
			{"certificate/nil, no list", false, nil, opts(nothing, cert(nil, nil))},
			{"certificate/error", false, nil, opts(cert(nil, tlstest.ErrDenied))},
			{"certificate/error, no list", false, nil, opts(nothing, cert(nil, tlstest.ErrDenied))},
			{"certificate/empty", false, nil, opts(nothing, cert(&tls.Certificate{}, nil))},
			{"certificate/no key", false, nil, opts(nothing, cert(&tls.Certificate{Certificate: good.Certificate}, nil))},
			{"certificate/wrong name", false, nil, opts(cert(&other, nil))},
			{"certificate/no SNI", true, opts(insecure, func(c *tls.Config) { c.ServerName = "" }), opts(cert(&good, nil))},
			{"certificate/that the client can't use", false, opts(tlstest.Suites(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
				tlstest.Only(tls.VersionTLS12)), opts(cert(&good, nil))},
		} {
			t.Run(tlstest.VersionName(version)+"/"+test.name, func(t *testing.T) {
				c := tlstest.Case{
					Client: tlstest.ClientWith(append([]func(*tls.Config){v}, test.client...)...),
					Server: tlstest.ServerWith(test.server...),
					Calls:  &calls,
				}
				expect(t, test.good, c)
			})
		}
	}
}

// TestDifferentialGetClientCertificate compares a client's use of its callback's results.
func TestDifferentialGetClientCertificate(t *testing.T) {
	defer checkStale(t)
	var calls tlstest.Calls
	answer := func(cert *tls.Certificate, err error) func(*tls.Config) {
		return func(c *tls.Config) {
			c.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
				var names []string
				for _, ca := range info.AcceptableCAs {
					names = append(names, fmt.Sprintf("%x", ca))
				}
				calls.Add(tlstest.ClientRole, "GetClientCertificate(%v, %s, schemes %v, context %v)", names,
					tls.VersionName(info.Version), len(info.SignatureSchemes) > 0, info.Context().Value(contextKey{}))
				return cert, err
			}
		}
	}
	good, list := tlstest.ClientCert(tlstest.RSA2048), tlstest.Certificates(tlstest.ClientCert(tlstest.P256))
	unknown := tlstest.SpecimenNamed("unknown CA").Cert(tlstest.ClientRole)
	for _, version := range tlstest.Versions {
		for _, test := range []struct {
			name   string
			good   bool
			client []func(*tls.Config)
			mode   tls.ClientAuthType
		}{
			{"good", true, opts(answer(&good, nil)), tls.RequireAndVerifyClientCert},
			{"instead of the list", true, opts(list, answer(&good, nil)), tls.RequireAndVerifyClientCert},
			{"error", false, opts(answer(nil, tlstest.ErrDenied)), tls.RequestClientCert},
			{"error, required", false, opts(answer(nil, tlstest.ErrDenied)), tls.RequireAndVerifyClientCert},
			{"empty", true, opts(list, answer(new(tls.Certificate), nil)), tls.RequestClientCert},
			{"empty, required", false, opts(list, answer(new(tls.Certificate), nil)), tls.RequireAnyClientCert},
			{"of another authority", false, opts(answer(&unknown, nil)), tls.RequireAndVerifyClientCert},
			{"not asked for", true, opts(answer(nil, tlstest.ErrDenied)), tls.NoClientCert},
		} {
			t.Run(tlstest.VersionName(version)+"/"+test.name, func(t *testing.T) {
				expect(t, test.good, tlstest.Case{
					Client: tlstest.ClientWith(append(test.client, tlstest.Only(version))...),
					Server: tlstest.ServerWith(tlstest.Only(version), tlstest.AskClient(test.mode)),
					Calls:  &calls,
					Context: func(tlstest.Role) context.Context {
						return context.WithValue(context.Background(), contextKey{}, "the handshake's")
					},
				})
			})
		}
	}
}

type contextKey struct{}
