//go:build (cgo || ossl_nocgo) && go1.27

package differential

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// needMLDSA skips a test unless the library has ML-DSA.
func needMLDSA(t *testing.T) {
	t.Helper()
	if !ossltest.AtLeast("3.5") {
		t.Skipf("OpenSSL %s has no ML-DSA; 3.5 has", ossltest.Version())
	}
}

// An mldsaFamily is a root, an intermediate authority and leaves, with ML-DSA keys of one kind.
type mldsaFamily struct {
	root, intermediate *tlstest.Authority
	leaf               func(tlstest.Role) tls.Certificate
	pool               *x509.CertPool // the root, and the good one
}

func newMLDSAFamily(kind tlstest.KeyKind) mldsaFamily {
	root := tlstest.NewAuthorityOf(kind, "root "+string(kind), nil, nil)
	intermediate := tlstest.NewAuthorityOf(kind, "intermediate "+string(kind), root, nil)
	pool := tlstest.CA().Pool()
	pool.AddCert(root.Cert)
	leaf := func(role tlstest.Role) tls.Certificate {
		name := tlstest.ServerName
		if role == tlstest.ClientRole {
			name = tlstest.ClientName
		}
		return tlstest.New(tlstest.Options{Kind: kind, Names: []string{name}, Issuer: intermediate,
			Chain: []*x509.Certificate{intermediate.Cert}})
	}
	return mldsaFamily{root, intermediate, leaf, pool}
}

// trust makes a configuration trust the family's root in addition to the good one.
func (f mldsaFamily) trust(c *tls.Config) {
	c.RootCAs = f.pool
	if c.ClientCAs != nil {
		c.ClientCAs = f.pool
	}
}

// A plainSigner hides the type of a key.
type plainSigner struct{ crypto.Signer }

// A wrongSigner signs something else.
type wrongSigner struct{ crypto.Signer }

func (s wrongSigner) Sign(rand io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	return s.Signer.Sign(rand, append([]byte("not "), message...), opts)
}

// An otherSigner has another public key than the key it signs with.
type otherSigner struct {
	crypto.Signer
	public crypto.PublicKey
}

func (s otherSigner) Public() crypto.PublicKey { return s.public }

// TestDifferentialMLDSA runs handshakes with ML-DSA certificates on both sides, issued by an ECDSA
// authority and by ML-DSA ones, with crypto/tls's ways of choosing them.
func TestDifferentialMLDSA(t *testing.T) {
	needMLDSA(t)
	defer checkStale(t)
	for _, kind := range tlstest.MLDSAKinds {
		family := newMLDSAFamily(kind)
		for _, issuer := range []struct {
			name string
			cert func(tlstest.Role) tls.Certificate
		}{
			{"ECDSA issuer", func(role tlstest.Role) tls.Certificate {
				if role == tlstest.ClientRole {
					return tlstest.ClientCert(kind)
				}
				return tlstest.ServerCert(kind)
			}},
			{"ML-DSA issuers", family.leaf},
			{"ECDSA key of ML-DSA issuers", func(role tlstest.Role) tls.Certificate {
				return tlstest.New(tlstest.Options{Names: []string{tlstest.ServerName}, Issuer: family.intermediate,
					Chain: []*x509.Certificate{family.intermediate.Cert}})
			}},
		} {
			for _, how := range []struct {
				name string
				with func(tls.Certificate) func(*tls.Config)
			}{
				{"static", func(cert tls.Certificate) func(*tls.Config) { return tlstest.Certificates(cert) }},
				{"signer", func(cert tls.Certificate) func(*tls.Config) {
					cert.PrivateKey = plainSigner{cert.PrivateKey.(crypto.Signer)}
					return tlstest.Certificates(cert)
				}},
				{"callback", func(cert tls.Certificate) func(*tls.Config) {
					return func(c *tls.Config) {
						c.Certificates = nil
						c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
						c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
					}
				}},
				{"among others", func(cert tls.Certificate) func(*tls.Config) {
					return tlstest.Certificates(tlstest.New(tlstest.Options{Names: []string{tlstest.OtherName}}), cert)
				}},
			} {
				if ossltest.InFIPS && how.name == "signer" {
					continue // it would sign outside of the module
				}
				server, client := how.with(issuer.cert(tlstest.ServerRole)), how.with(issuer.cert(tlstest.ClientRole))
				t.Run(fmt.Sprintf("%s/%s/%s/server", kind, issuer.name, how.name), func(t *testing.T) {
					mustPass(t, differ(t, tlstest.Case{Client: tlstest.ClientWith(family.trust), Server: tlstest.ServerWith(server)}))
				})
				t.Run(fmt.Sprintf("%s/%s/%s/mutual", kind, issuer.name, how.name), func(t *testing.T) {
					mustPass(t, differ(t, tlstest.Case{
						Client: tlstest.ClientWith(family.trust, client),
						Server: tlstest.ServerWith(server, tlstest.AskClient(tls.RequireAndVerifyClientCert), family.trust),
					}))
				})
			}
		}
	}
}

// TestDifferentialMLDSARefused compares refusals.
func TestDifferentialMLDSARefused(t *testing.T) {
	needMLDSA(t)
	defer checkStale(t)
	keyOf := func(cert tls.Certificate) crypto.Signer { return cert.PrivateKey.(crypto.Signer) }
	for _, kind := range tlstest.MLDSAKinds {
		family := newMLDSAFamily(kind)
		wrong := tlstest.ServerCert(kind)
		wrong.PrivateKey = wrongSigner{keyOf(wrong)}
		corrupt := tlstest.New(tlstest.Options{Kind: kind, Issuer: family.intermediate, Corrupt: true,
			Chain: []*x509.Certificate{family.intermediate.Cert}})
		other := tlstest.MLDSAKinds[0]
		if other == kind {
			other = tlstest.MLDSAKinds[1]
		}
		// crypto/tls signs with the algorithm of the signer's public key.
		otherSet := tlstest.ServerCert(kind)
		otherKey := tlstest.Key(other, "leaf")
		otherSet.PrivateKey = otherSigner{otherKey, otherKey.Public()}

		for _, test := range []struct {
			name     string
			cert     tls.Certificate
			sentBy   string // "" for both implementations
			untrusts bool
		}{
			{"wrong signature", wrong, "", false},
			{"another parameter set's signature", otherSet, "std", false},
			{"damaged certificate", corrupt, "", false},
			{"unknown authority", family.leaf(tlstest.ServerRole), "", true},
		} {
			trust := family.trust
			if test.untrusts {
				trust = func(*tls.Config) {}
			}
			asServer, asClient := pairings(), pairings()
			if ossltest.InFIPS && test.name == "wrong signature" {
				test.sentBy = "std"
			}
			if test.sentBy == "std" {
				asServer, asClient = against(tlstest.ClientRole), against(tlstest.ServerRole)
			}
			t.Run(fmt.Sprintf("TLS1.3/%s/%s/server", kind, test.name), func(t *testing.T) {
				mustFail(t, differIn(t, tlstest.Case{Client: tlstest.ClientWith(trust),
					Server: tlstest.ServerWith(tlstest.Only(tls.VersionTLS13), tlstest.Certificates(test.cert))}, asServer...))
			})
			t.Run(fmt.Sprintf("TLS1.3/%s/%s/client", kind, test.name), func(t *testing.T) {
				mustFail(t, differIn(t, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS13), tlstest.SendCertificate(test.cert)),
					Server: tlstest.ServerWith(tlstest.AskClient(tls.RequireAndVerifyClientCert), trust),
				}, asClient...))
			})
		}
		t.Run(fmt.Sprintf("TLS1.2/%s/server", kind), func(t *testing.T) {
			mustFail(t, differ(t, tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS12)),
				Server: tlstest.ServerWith(tlstest.Certificates(tlstest.ServerCert(kind)))}))
		})
		t.Run(fmt.Sprintf("TLS1.2/%s/client", kind), func(t *testing.T) {
			mustFail(t, differ(t, tlstest.Case{Client: tlstest.ClientWith(tlstest.Certificates(tlstest.ClientCert(kind))),
				Server: tlstest.ServerWith(tlstest.Only(tls.VersionTLS12), tlstest.AskClient(tls.RequireAndVerifyClientCert))}))
		})
	}
}

// TestDifferentialMLDSAChoice makes a server choose among certificates of several kinds, by the
// client's versions and algorithms.
func TestDifferentialMLDSAChoice(t *testing.T) {
	needMLDSA(t)
	defer checkStale(t)
	kinds := map[string][]tlstest.KeyKind{
		"ML-DSA first": {tlstest.MLDSA65, tlstest.P256, tlstest.RSA2048},
		"ML-DSA last":  {tlstest.RSA2048, tlstest.P256, tlstest.MLDSA65},
		"ML-DSA alone": {tlstest.MLDSA44, tlstest.MLDSA87},
	}
	for name, list := range kinds {
		var certs []tls.Certificate
		for _, kind := range list {
			certs = append(certs, tlstest.ServerCert(kind))
		}
		for _, version := range tlstest.Versions {
			if version == tls.VersionTLS12 && name == "ML-DSA alone" {
				continue // TestDifferentialMLDSARefused
			}
			t.Run(name+"/"+tlstest.VersionName(version), func(t *testing.T) {
				mustPass(t, differ(t, tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version)),
					Server: tlstest.ServerWith(tlstest.Certificates(certs...))}))
			})
		}
	}
}
