//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// signedWith returns the algorithm of the signature that a side has made.
func signedWith(t *testing.T, o *tlstest.Outcome, role tlstest.Role, version uint16) tls.SignatureScheme {
	t.Helper()
	const serverKeyExchange, certificateVerify = 12, 15
	for _, m := range tlstest.Messages(o.Recording.Decipher(role, o.ServerLog)) {
		switch body := m[4:]; {
		case m[0] == certificateVerify:
			return tls.SignatureScheme(int(body[0])<<8 | int(body[1]))
		case m[0] == serverKeyExchange && version < tls.VersionTLS13: // curve type, group, public key: RFC 8422, section 5.4
			body = body[4+int(body[3]):]
			return tls.SignatureScheme(int(body[0])<<8 | int(body[1]))
		}
	}
	t.Fatalf("%s has signed nothing", role)
	return 0
}

// TestDifferentialKeyWithoutPrimes: an RSA key of which only the exponents are known, as some key
// services give it, signs in Go.
func TestDifferentialKeyWithoutPrimes(t *testing.T) {
	bare := func(cert tls.Certificate) func(*tls.Config) {
		key := cert.PrivateKey.(*rsa.PrivateKey)
		cert.PrivateKey = &rsa.PrivateKey{PublicKey: key.PublicKey, D: key.D}
		return tlstest.Certificates(cert)
	}
	for _, version := range tlstest.Versions {
		t.Run(tlstest.VersionName(version), func(t *testing.T) {
			got := differ(t, tlstest.Case{
				Client: tlstest.ClientWith(tlstest.Only(version), bare(tlstest.ClientCert(tlstest.RSA2048))),
				Server: tlstest.ServerWith(tlstest.Only(version), bare(tlstest.ServerCert(tlstest.RSA2048)),
					tlstest.AskClient(tls.RequireAndVerifyClientCert)),
			})
			if got.Client.HandshakeErr != nil || got.Server.HandshakeErr != nil {
				t.Errorf("%v, %v", got.Client.HandshakeErr, got.Server.HandshakeErr)
			}
		})
	}
}

// TestCertificateSignatures: a certificate's SupportedSignatureAlgorithms narrow the list of
// WithSignatureAlgorithms, whose order counts, and never add to it.
func TestCertificateSignatures(t *testing.T) {
	named := []tls.SignatureScheme{tls.PSSWithSHA384, tls.PSSWithSHA256}
	for _, version := range tlstest.Versions {
		for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			for _, test := range []struct {
				name        string
				certificate []tls.SignatureScheme
				named       []tls.SignatureScheme
				want        tls.SignatureScheme
			}{
				{"certificate", []tls.SignatureScheme{tls.PSSWithSHA512}, nil, tls.PSSWithSHA512},
				{"option", nil, named, tls.PSSWithSHA384},
				{"both", []tls.SignatureScheme{tls.PSSWithSHA256, tls.PSSWithSHA384}, named, tls.PSSWithSHA384},
				{"one is left", []tls.SignatureScheme{tls.PSSWithSHA512, tls.PSSWithSHA256}, named, tls.PSSWithSHA256},
			} {
				for _, byCallback := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%s/%t", tls.VersionName(version), role, test.name, byCallback), func(t *testing.T) {
						certificate := tlstest.ServerCert
						if role == tlstest.ClientRole {
							certificate = tlstest.ClientCert
						}
						cert := certificate(tlstest.RSA2048)
						cert.SupportedSignatureAlgorithms = test.certificate
						with := tlstest.Certificates(cert)
						if byCallback {
							with = func(c *tls.Config) {
								c.Certificates = nil
								c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
								c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
							}
						}
						impl := ossltest.Optioned{}
						if test.named != nil {
							impl.Options = []ossl.Option{ossl.WithSignatureAlgorithms(test.named...)}
						}
						p, c := tlstest.Pairing{Client: impl, Server: tlstest.Std}, tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version),
							with),
							Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Certificates(tlstest.ServerCert(tlstest.RSA2048)),
								tlstest.AskClient(tls.RequireAnyClientCert))}
						if role == tlstest.ServerRole {
							p = tlstest.Pairing{Client: tlstest.Std, Server: impl}
							c = tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version)),
								Server: tlstest.ServerWith(tlstest.Only(version), with)}
						}
						o := tlstest.Run(p, c)
						mustPass(t, o)
						got := signedWith(t, o, role, version)
						if byCallback && role == tlstest.ClientRole { // libssl has made its list by then: docs/COMPATIBILITY.md
							if test.named != nil && !slices.Contains(test.named, got) {
								t.Errorf("signed with %v", got)
							}
						} else if got != test.want {
							t.Errorf("signed with %v, want %v", got, test.want)
						}
					})
				}
			}
		}
	}
}

// TestCertificateSignaturesRefused: a certificate that can't be used for anything is refused by
// name.
func TestCertificateSignaturesRefused(t *testing.T) {
	cert := tlstest.ServerCert(tlstest.RSA2048)
	cert.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.PSSWithSHA256, tls.PKCS1WithSHA256}
	only512 := ossl.WithSignatureAlgorithms(tls.PSSWithSHA512)
	refused := func(err error, field string) {
		t.Helper()
		var e *ossl.ConfigError
		if !errors.As(err, &e) || e.Field != field {
			t.Errorf("%v, want a ConfigError for %s", err, field)
		}
	}
	try := func(config *tls.Config) (*ossl.Context, error) {
		return ossl.NewContext(config, append(ossltest.AsTests(), only512)...)
	}
	_, err := try(tlstest.ServerConfig(tlstest.Certificates(cert)))
	refused(err, "Certificates")

	ctx, err := try(tlstest.ServerConfig(func(c *tls.Config) {
		c.Certificates = nil
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
	}))
	if err != nil {
		t.Fatal(err)
	}
	a, b := tlstest.Buffered()
	client, server := tls.Client(a, tlstest.ClientConfig()), ctx.Server(b)
	done := make(chan error, 1)
	go func() { done <- client.Handshake() }()
	refused(server.Handshake(), "GetCertificate")
	server.Close()
	if err := <-done; err == nil {
		t.Error("the client is served")
	}
}
