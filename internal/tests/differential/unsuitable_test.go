//go:build cgo || ossl_nocgo

package differential

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialUnsuitableClientCertificate makes clients choose certificates for a server that
// accepts only PSSWithSHA256 signatures. The handshake fails if the user's callback returns an
// unsuitable certificate; if all of Certificates are unsuitable, none is chosen.
func TestDifferentialUnsuitableClientCertificate(t *testing.T) {
	defer checkStale(t)
	server := ossltest.Optioned{Options: []ossl.Option{ossl.WithSignatureAlgorithms(tls.PSSWithSHA256)}}
	to := []tlstest.Pairing{{Client: tlstest.Std, Server: server}, {Client: ossltest.UnderTest, Server: server}}
	limited := func(schemes ...tls.SignatureScheme) tls.Certificate {
		cert := tlstest.ClientCert(tlstest.RSA2048)
		cert.SupportedSignatureAlgorithms = schemes
		return cert
	}
	for _, version := range tlstest.Versions {
		for _, mode := range authModes[:3] {
			for _, test := range []struct {
				name string
				good bool // the certificate may be sent
				cert tls.Certificate
			}{
				{"RSA", true, tlstest.ClientCert(tlstest.RSA2048)},
				{"ECDSA", false, tlstest.ClientCert(tlstest.P256)},
				{"Ed25519", false, tlstest.ClientCert(tlstest.Ed25519)},
				{"RSA for another hash", false, limited(tls.PSSWithSHA512, tls.PSSWithSHA384)},
				{"RSA for two hashes", true, limited(tls.PSSWithSHA512, tls.PSSWithSHA256)},
				{"a key that is no crypto.Signer", false, tls.Certificate{
					Certificate: tlstest.ClientCert(tlstest.RSA2048).Certificate, PrivateKey: "no key"}},
			} {
				name := func(how string) string {
					return fmt.Sprintf("%s/%s/%s/%s", tlstest.VersionName(version), mode.name, how, test.name)
				}
				asked := mode.mode != tls.NoClientCert
				run := func(t *testing.T, good bool, with func(*tls.Config)) {
					o := differIn(t, tlstest.Case{
						Client: tlstest.ClientWith(tlstest.Only(version), with),
						Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Certificates(tlstest.ServerCert(tlstest.RSA2048)),
							tlstest.AskClient(mode.mode)),
					}, to...)
					if good {
						mustPass(t, o)
					} else {
						mustFail(t, o)
					}
				}
				t.Run(name("callback"), func(t *testing.T) { run(t, test.good || !asked, tlstest.SendCertificate(test.cert)) })
				if test.cert.PrivateKey != "no key" { // refused when it is configured
					t.Run(name("list"), func(t *testing.T) {
						run(t, test.good || mode.mode != tls.RequireAnyClientCert, tlstest.Certificates(test.cert))
					})
				}
			}
		}
	}
}

// TestDifferentialUnsuitableToStd uses a crypto/tls server, which doesn't accept an unprotected
// alert in TLS 1.3. If the client reads byte by byte, the server's Finished has not arrived when
// the client is asked for its certificate.
func TestDifferentialUnsuitableToStd(t *testing.T) {
	defer checkStale(t)
	cert := tlstest.ClientCert(tlstest.RSA2048)
	cert.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.PKCS1WithSHA256} // not for TLS 1.3
	for name, pair := range map[string]tlstest.Pair{"at once": tlstest.Buffered, "byte by byte": byteByByte} {
		for _, mode := range authModes[1:3] {
			t.Run(mode.name+"/"+name, func(t *testing.T) {
				mustFail(t, differIn(t, tlstest.Case{
					Pair:   pair,
					Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS13), tlstest.SendCertificate(cert)),
					Server: tlstest.ServerWith(tlstest.Only(tls.VersionTLS13), tlstest.AskClient(mode.mode)),
				}, against(tlstest.ClientRole)...))
			})
		}
	}
}

// TestDifferentialUnsuitableServerCertificate uses servers whose certificate fits none of the
// client's algorithms.
func TestDifferentialUnsuitableServerCertificate(t *testing.T) {
	defer checkStale(t)
	client := ossltest.Optioned{Options: []ossl.Option{ossl.WithSignatureAlgorithms(tls.PSSWithSHA256)}}
	to := []tlstest.Pairing{{Client: client, Server: tlstest.Std}, {Client: client, Server: ossltest.UnderTest}}
	limited := tlstest.ServerCert(tlstest.RSA2048)
	limited.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.PSSWithSHA512}
	for _, version := range tlstest.Versions {
		for _, test := range []struct {
			name string
			good bool
			cert tls.Certificate
		}{
			{"RSA", true, tlstest.ServerCert(tlstest.RSA2048)},
			{"ECDSA", false, tlstest.ServerCert(tlstest.P256)},
			{"Ed25519", false, tlstest.ServerCert(tlstest.Ed25519)},
			{"RSA for another hash", false, limited},
		} {
			for _, how := range []string{"one", "two", "GetCertificate", "GetConfigForClient"} {
				t.Run(fmt.Sprintf("%s/%s/%s", tlstest.VersionName(version), how, test.name), func(t *testing.T) {
					with := tlstest.Certificates(test.cert)
					switch how {
					case "two":
						with = tlstest.Certificates(test.cert, test.cert)
					case "GetCertificate":
						with = func(c *tls.Config) {
							c.Certificates = nil
							c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &test.cert, nil }
						}
					case "GetConfigForClient":
						chosen := tlstest.ServerConfig(tlstest.Only(version), with)
						with = func(c *tls.Config) {
							c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
						}
					}
					o := differIn(t, tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version)),
						Server: tlstest.ServerWith(tlstest.Only(version), with)}, to...)
					if test.good {
						mustPass(t, o)
					} else {
						mustFail(t, o)
					}
				})
			}
		}
	}
}

// TestLeftOut: a TLS 1.3 client's certificate is signed by an algorithm that is not in the server's
// signature_algorithms_cert. crypto/tls sends it, libssl doesn't: the handshake fails rather than
// continue without it.
func TestLeftOut(t *testing.T) {
	cert := tlstest.New(tlstest.Options{Kind: tlstest.RSA2048, SelfSigned: true})
	sha256, sha224 := []byte("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"), []byte("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0e")
	if bytes.Count(cert.Certificate[0], sha256) != 2 {
		t.Fatal("not signed by sha256WithRSAEncryption")
	}
	cert.Certificate = [][]byte{bytes.ReplaceAll(cert.Certificate[0], sha256, sha224)}
	cert.Leaf = nil
	for _, version := range tlstest.Versions {
		for _, byCallback := range []bool{false, true} {
			with := tlstest.Certificates(cert)
			if byCallback {
				with = tlstest.SendCertificate(cert)
			}
			o := tlstest.Run(tlstest.Pairing{Client: ossltest.UnderTest, Server: tlstest.Std}, tlstest.Case{
				Client: tlstest.ClientWith(tlstest.Only(version), with),
				Server: tlstest.ServerWith(tlstest.Only(version), func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }),
			})
			if version == tls.VersionTLS12 { // which has no signature_algorithms_cert
				mustPass(t, o)
				continue
			}
			want := "tls: peer doesn't support any of the certificate's signature algorithms"
			if err := o.Client.HandshakeErr; err == nil || err.Error() != want {
				t.Errorf("the client got %v, want %s", err, want)
			}
			err := o.Server.HandshakeErr
			if err == nil {
				err = o.Server.TalkErr // RequestClientCert
			}
			if want := "remote error: tls: handshake failure"; err == nil || err.Error() != want {
				t.Errorf("the server got %v, want %s", err, want)
			}
		}
	}
}

// TestUnusableClientCertificate: if libssl refuses the client's certificate, the server gets an
// alert.
func TestUnusableClientCertificate(t *testing.T) {
	client := ossltest.Optioned{Options: []ossl.Option{ossl.WithSecurityLevel(3)}} // 128 bits
	for _, version := range tlstest.Versions {
		o := tlstest.Run(tlstest.Pairing{Client: client, Server: tlstest.Std}, tlstest.Case{
			Client: tlstest.ClientWith(tlstest.Only(version), tlstest.SendCertificate(tlstest.ClientCert(tlstest.RSA2048))),
			Server: tlstest.ServerWith(tlstest.Only(version), tlstest.AskClient(tls.RequestClientCert)),
		})
		if o.Client.HandshakeErr == nil || o.Client.Alerts != "2/80" {
			t.Errorf("%s: the client got %v and sent %q", tls.VersionName(version), o.Client.HandshakeErr, o.Client.Alerts)
		}
		if err, want := o.Server.HandshakeErr, "remote error: tls: internal error"; err == nil || err.Error() != want {
			t.Errorf("%s: the server got %v, want %s", tls.VersionName(version), err, want)
		}
	}
}

// byteByByte is a pair whose client reads one byte at a time.
func byteByByte() (client, server net.Conn) {
	client, server = tlstest.Buffered()
	return oneByte{client}, server
}

type oneByte struct{ net.Conn }

func (c oneByte) Read(b []byte) (int, error) { return c.Conn.Read(b[:min(1, len(b))]) }
