package libp2ptls

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	ci "github.com/libp2p/go-libp2p/core/crypto"
	stdtls "github.com/libp2p/go-libp2p/p2p/security/tls"
)

var extensionID = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 53594, 1, 1}

// signedKey is the extension's value.
type signedKey struct {
	PubKey    []byte
	Signature []byte
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newCertKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

// template is for a certificate that is valid now and has the extensions given.
func template(extensions ...pkix.Extension) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:    big.NewInt(1),
		NotBefore:       time.Now().Add(-time.Hour),
		NotAfter:        time.Now().Add(time.Hour),
		ExtraExtensions: extensions,
	}
}

func selfSigned(key crypto.Signer, tmpl *x509.Certificate) []byte {
	return must(x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key))
}

func chain(key crypto.PrivateKey, certs ...[]byte) []tls.Certificate {
	return []tls.Certificate{{Certificate: certs, PrivateKey: key}}
}

// certified returns a valid certificate for a libp2p key, changed by edit.
func certified(who ci.PrivKey, edit func(*x509.Certificate)) []tls.Certificate {
	key := newCertKey()
	tmpl := template(must(stdtls.GenerateSignedExtension(who, key.Public())))
	edit(tmpl)
	return chain(key, selfSigned(key, tmpl))
}

// withExtension is a certificate with this as libp2p's extension.
func withExtension(value []byte) []tls.Certificate {
	key := newCertKey()
	return chain(key, selfSigned(key, template(pkix.Extension{Id: extensionID, Value: value})))
}

func signedBy(key ci.PrivKey, signature []byte) []tls.Certificate {
	return withExtension(must(asn1.Marshal(signedKey{must(ci.MarshalPublicKey(key.GetPublic())), signature})))
}

func criticalExtension(who ci.PrivKey) []tls.Certificate {
	return certified(who, func(c *x509.Certificate) { c.ExtraExtensions[0].Critical = true })
}

// impostor has one key's public half and signs with another.
type impostor struct {
	public crypto.PublicKey
	crypto.Signer
}

func (i impostor) Public() crypto.PublicKey { return i.public }

// An offence is a certificate that is refused, with the expected error.
type offence struct {
	name   string
	certs  maker
	reason func(error) bool // reports whether the refusing side's error matches
	alert  tls.AlertError   // sent to the refused side
}

func says(text string) func(error) bool { return func(err error) bool { return err.Error() == text } }

func mentions(text string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), text) }
}

// offences are the eight kinds of go-libp2p's tests, and more.
func offences() []offence {
	const tooMany = "expected one certificates in the chain"
	return []offence{
		{"private key used in the TLS handshake doesn't match the public key in the cert", func(who ci.PrivKey) []tls.Certificate {
			certs := certified(who, func(*x509.Certificate) {})
			key := certs[0].PrivateKey.(*ecdsa.PrivateKey)
			certs[0].PrivateKey = impostor{key.Public(), newCertKey()}
			return certs
		}, invalidSignature, alertDecryptError},
		{"certificate chain contains 2 certs", func(ci.PrivKey) []tls.Certificate {
			key1, key2 := newCertKey(), newCertKey()
			cert1 := selfSigned(key1, template())
			parent := must(x509.ParseCertificate(cert1))
			return chain(key2, must(x509.CreateCertificate(rand.Reader, template(), parent, key2.Public(), key1)), cert1)
		}, says(tooMany), alertBadCertificate},
		{"cert is expired", func(who ci.PrivKey) []tls.Certificate {
			return certified(who, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
		}, mentions("certificate has expired or is not yet valid"), alertBadCertificate},
		{"cert doesn't have the key extension", func(ci.PrivKey) []tls.Certificate {
			key := newCertKey()
			return chain(key, selfSigned(key, template()))
		}, says("expected certificate to contain the key extension"), alertBadCertificate},
		{"key extension not parseable", func(ci.PrivKey) []tls.Certificate { return withExtension([]byte("foobar")) },
			mentions("asn1"), alertBadCertificate},
		{"key protobuf not parseable", func(ci.PrivKey) []tls.Certificate {
			return withExtension(must(asn1.Marshal(signedKey{PubKey: []byte("foobar")})))
		}, mentions("unmarshalling public key failed: proto:"), alertBadCertificate},
		{"signature is malformed", func(ci.PrivKey) []tls.Certificate { return signedBy(newKey(ci.Secp256k1), []byte("foobar")) },
			mentions("signature verification failed:"), alertBadCertificate},
		{"signature is invalid", func(ci.PrivKey) []tls.Certificate {
			key := newKey(ci.Secp256k1)
			return signedBy(key, must(key.Sign([]byte("foobar"))))
		}, says("signature invalid"), alertBadCertificate},

		// Each of the two would be accepted alone, but together they are refused: the case that was
		// disabled in the pull request.
		{"two identical certs", func(who ci.PrivKey) []tls.Certificate {
			certs := certified(who, func(*x509.Certificate) {})
			certs[0].Certificate = append(certs[0].Certificate, certs[0].Certificate[0])
			return certs
		}, says(tooMany), alertBadCertificate},
		{"a good cert and its parent", func(who ci.PrivKey) []tls.Certificate {
			key, parentKey := newCertKey(), newCertKey()
			tmpl := template(must(stdtls.GenerateSignedExtension(who, key.Public())))
			parentTmpl := template()
			parentTmpl.IsCA, parentTmpl.BasicConstraintsValid = true, true
			parent := selfSigned(parentKey, parentTmpl)
			cert := must(x509.CreateCertificate(rand.Reader, tmpl, must(x509.ParseCertificate(parent)), key.Public(), parentKey))
			return chain(key, cert, parent)
		}, says(tooMany), alertBadCertificate},
		{"three certs", func(who ci.PrivKey) []tls.Certificate {
			certs := certified(who, func(*x509.Certificate) {})
			one := certs[0].Certificate[0]
			certs[0].Certificate = [][]byte{one, one, one}
			return certs
		}, says(tooMany), alertBadCertificate},
		{"cert is not yet valid", func(who ci.PrivKey) []tls.Certificate {
			return certified(who, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })
		}, mentions("certificate has expired or is not yet valid"), alertBadCertificate},
		{"unknown critical extension", func(who ci.PrivKey) []tls.Certificate {
			return certified(who, func(c *x509.Certificate) {
				unknown := pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 53594, 1, 2}, Critical: true, Value: []byte{5, 0}}
				c.ExtraExtensions = append(c.ExtraExtensions, unknown)
			})
		}, mentions("unhandled critical extension"), alertBadCertificate},
		{"the key signed for another cert", func(who ci.PrivKey) []tls.Certificate {
			return certified(who, func(c *x509.Certificate) {
				c.ExtraExtensions[0] = must(stdtls.GenerateSignedExtension(who, newCertKey().Public()))
			})
		}, says("signature invalid"), alertBadCertificate},
	}
}

// invalidSignature matches crypto/tls's error or libssl's.
func invalidSignature(err error) bool {
	var alert tls.AlertError
	return strings.HasPrefix(err.Error(), "tls: invalid signature by the ") || errors.As(err, &alert) && alert == alertDecryptError
}

// A maker makes the certificates that a peer presents.
type maker func(who ci.PrivKey) []tls.Certificate

// showing makes a transport present other certificates than its own.
func showing(certs maker, who identity) func(*tls.Config) {
	return func(c *tls.Config) { c.Certificates = certs(who.key) }
}

// offending makes one side of a meeting present other certificates.
func (m meeting) offending(t *testing.T, p pairing, side string, certs maker) meeting {
	t.Helper()
	if side == "client" {
		m.client = p.client.transport(t, clientPeer(), nil, showing(certs, clientPeer()))
	} else {
		m.server = p.server.transport(t, serverPeer(), nil, showing(certs, serverPeer()))
	}
	return m
}

// offend makes one side present certificates that are refused, and returns both sides' results.
func offend(t *testing.T, p pairing, side string, certs maker) (log *recording, refusing, refused error) {
	t.Helper()
	a, b := loopback(t)
	log = record(t, a, b)
	c, s := p.meeting(t).offending(t, p, side, certs).run(t, log.client, log.server)
	if s.err == nil { // accepted: the other side must not wait for an alert
		s.conn.Close()
	}
	if side == "server" {
		return log, c.err, s.err
	}
	if c.err != nil {
		t.Fatalf("the client learns of it in the handshake: %v", c.err)
	}
	_, err := c.conn.Read(make([]byte, 1))
	return log, s.err, err
}

// TestInvalidCerts: each is refused on both sides, with its own error and go-libp2p's alert.
func TestInvalidCerts(t *testing.T) {
	for _, o := range offences() {
		for _, side := range []string{"client", "server"} {
			t.Run(side+" offending: "+o.name, func(t *testing.T) {
				inAllPairings(t, func(t *testing.T, p pairing) {
					log, refusing, refused := offend(t, p, side, o.certs)
					if refusing == nil {
						t.Fatal("accepted")
					}
					if !o.reason(refusing) {
						t.Errorf("refused for another reason: %v", refusing)
					}
					wantRefusal(t, p, refused, o.alert, log, side == "server")
				})
			})
		}
	}
}

// TestNotSelfSigned: go-libp2p accepts a certificate that another key signed, against libp2p's
// specification; this package doesn't.
func TestNotSelfSigned(t *testing.T) {
	foreign := func(who ci.PrivKey) []tls.Certificate {
		key, other := newCertKey(), newCertKey()
		tmpl := template(must(stdtls.GenerateSignedExtension(who, key.Public())))
		return chain(key, must(x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), other)))
	}
	damaged := func(who ci.PrivKey) []tls.Certificate {
		certs := certified(who, func(*x509.Certificate) {})
		der := certs[0].Certificate[0]
		der[len(der)-1] ^= 1
		return certs
	}
	for name, certs := range map[string]maker{"someone else's": foreign, "damaged": damaged} {
		inAllPairings(t, func(t *testing.T, p pairing) {
			for _, side := range []string{"client", "server"} {
				t.Run(side+"/"+name, func(t *testing.T) {
					refuses := p.server
					if side == "server" {
						refuses = p.client
					}
					if refuses.name == stdFlavour.name {
						// If this fails, go-libp2p now checks it: note this in docs/LIBP2P.md.
						p.meeting(t).offending(t, p, side, certs).both(t)
						return
					}
					log, refusing, refused := offend(t, p, side, certs)
					if refusing == nil || !strings.HasPrefix(refusing.Error(), "certificate is not self-signed: ") {
						t.Errorf("%v", refusing)
					}
					wantRefusal(t, p, refused, alertBadCertificate, log, side == "server")
				})
			}
		})
	}
}

// TestValidCerts: unusual certificates that are allowed.
func TestValidCerts(t *testing.T) {
	for _, test := range []struct {
		name  string
		certs maker
	}{
		{"critical key extension", criticalExtension},
		{"unknown extension", func(who ci.PrivKey) []tls.Certificate {
			return certified(who, func(c *x509.Certificate) {
				unknown := pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 53594, 1, 2}, Value: []byte{5, 0}}
				c.ExtraExtensions = append(c.ExtraExtensions, unknown)
			})
		}},
		{"names", func(who ci.PrivKey) []tls.Certificate {
			return certified(who, func(c *x509.Certificate) {
				c.Subject.CommonName, c.EmailAddresses = "peer.test.name", []string{"unittest@example.com"}
			})
		}},
		{"RSA", func(who ci.PrivKey) []tls.Certificate {
			key := must(rsa.GenerateKey(rand.Reader, 2048))
			return chain(key, selfSigned(key, template(must(stdtls.GenerateSignedExtension(who, key.Public())))))
		}},
		{"P-384", func(who ci.PrivKey) []tls.Certificate {
			key := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
			return chain(key, selfSigned(key, template(must(stdtls.GenerateSignedExtension(who, key.Public())))))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inAllPairings(t, func(t *testing.T, p pairing) {
				m := p.meeting(t)
				edit := func(who identity) func(*tls.Config) {
					return func(c *tls.Config) { c.Certificates = test.certs(who.key) }
				}
				m.client = p.client.transport(t, clientPeer(), nil, edit(clientPeer()))
				m.server = p.server.transport(t, serverPeer(), nil, edit(serverPeer()))
				c, s := m.both(t)
				checkPeers(t, "client", c, clientPeer(), serverPeer())
				checkPeers(t, "server", s, serverPeer(), clientPeer())
			})
		})
	}
}
