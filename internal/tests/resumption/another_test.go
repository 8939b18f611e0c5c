//go:build cgo || ossl_nocgo

package resumption

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// TestSessionIsBoundToIdentity offers sessions to servers that share the first server's ticket keys
// and cache. They resume only sessions made with a certificate that has the same names as their
// own, since a client that resumes sees no certificate.
func TestSessionIsBoundToIdentity(t *testing.T) {
	cert := func(kind tlstest.KeyKind, key string, names []string, edit func(*x509.Certificate)) tls.Certificate {
		return tlstest.New(tlstest.Options{Key: tlstest.Key(kind, key), Names: names, Edit: edit})
	}
	named := func(names ...string) tls.Certificate { return cert(tlstest.P256, "a", names, nil) }
	both := []string{tlstest.ServerName, tlstest.OtherName}
	uri := func(s string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			u, err := url.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			c.URIs = []*url.URL{u}
		}
	}
	registered := func(id ...byte) func(*x509.Certificate) { // a kind of name that crypto/x509 passes over
		return func(c *x509.Certificate) {
			value, err := asn1.Marshal([]asn1.RawValue{
				{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte(tlstest.ServerName)},
				{Class: asn1.ClassContextSpecific, Tag: 8, Bytes: id},
			})
			if err != nil {
				t.Fatal(err)
			}
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
		}
	}
	subject := func(name string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.DNSNames, c.Subject = nil, pkix.Name{CommonName: name} }
	}
	nameless := func(c *x509.Certificate) { c.DNSNames, c.Subject = nil, pkix.Name{} }

	for _, test := range []struct {
		name     string
		at, then tls.Certificate
		resumes  bool
	}{
		{"renewed, same key", named(tlstest.ServerName), named(tlstest.ServerName), true},
		{"renewed, other key", named(tlstest.ServerName), cert(tlstest.P256, "b", nil, nil), true},
		{"RSA", named(tlstest.ServerName), cert(tlstest.RSA2048, "b", nil, nil), true},
		{"order and case", named(both...), named(strings.ToUpper(tlstest.OtherName), tlstest.ServerName, tlstest.ServerName), true},
		{"other name", named(tlstest.ServerName), named(tlstest.OtherName), false},
		{"other name, other key", named(tlstest.ServerName), cert(tlstest.P256, "b", []string{tlstest.OtherName}, nil), false},
		{"fewer names", named(both...), named(tlstest.ServerName), false},
		{"more names", named(tlstest.ServerName), named(both...), false},
		{"address", named(tlstest.ServerName), named(tlstest.ServerName, "192.0.2.1"), false},
		{"same URI", cert(tlstest.P256, "a", nil, uri("spiffe://x/a")), cert(tlstest.P256, "b", nil, uri("spiffe://x/a")), true},
		{"other URI", cert(tlstest.P256, "a", nil, uri("spiffe://x/a")), cert(tlstest.P256, "a", nil, uri("spiffe://x/A")), false},
		{"unknown kind", cert(tlstest.P256, "a", nil, registered(42, 3)), cert(tlstest.P256, "a", nil, registered(42, 4)), false},
		{"same subject", cert(tlstest.P256, "a", nil, subject("x")), cert(tlstest.P256, "b", nil, subject("x")), true},
		{"other subject", cert(tlstest.P256, "a", nil, subject("x")), cert(tlstest.P256, "a", nil, subject("y")), false},
		{"nameless, same key", cert(tlstest.P256, "a", nil, nameless), cert(tlstest.P256, "a", nil, nameless), true},
		{"nameless, other key", cert(tlstest.P256, "a", nil, nameless), cert(tlstest.P256, "b", nil, nameless), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				for _, store := range []string{"tickets", "cache", "both"} {
					for way := range identityWays {
						if testing.Short() && store != "both" {
							continue
						}
						t.Run(tls.VersionName(version)+"/"+store+"/"+way, func(t *testing.T) {
							testIdentity(t, version, store, way, test.at, test.then, test.resumes)
						})
					}
				}
			}
		})
	}
}

// identityWays are how a server gets its certificate.
var identityWays = map[string]func(*tls.Config, func() *tls.Certificate){
	"Certificates": nil, // a server of its own for each certificate
	"GetCertificate": func(c *tls.Config, now func() *tls.Certificate) {
		c.Certificates = nil
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return now(), nil }
	},
	"GetConfigForClient": func(c *tls.Config, now func() *tls.Certificate) {
		inner := c.Clone()
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			chosen := inner.Clone()
			chosen.Certificates = []tls.Certificate{*now()}
			return chosen, nil
		}
	},
	"GetConfigForClient, GetCertificate": func(c *tls.Config, now func() *tls.Certificate) {
		inner := c.Clone()
		inner.Certificates = nil
		inner.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return now(), nil }
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return inner, nil }
	},
}

func testIdentity(t *testing.T, version uint16, store, way string, at, then tls.Certificate, resumes bool) {
	ring, err := session.NewRing(session.NewTicketKey())
	if err != nil {
		t.Fatal(err)
	}
	cc, sc := tlstest.Resuming(version)
	var opts []ossl.Option
	switch store {
	case "tickets":
		opts = append(opts, ossl.WithTicketKeys(ring))
	case "cache":
		sc.SessionTicketsDisabled = true
		opts = append(opts, ossl.WithSessionCache(session.NewCache(8)))
	case "both":
		opts = append(opts, ossl.WithTicketKeys(ring), ossl.WithSessionCache(session.NewCache(8)))
	}
	names := at.Leaf.VerifyHostname(tlstest.ServerName) == nil
	cc.InsecureSkipVerify = !names
	if names {
		cc.ServerName = tlstest.ServerName
	}
	now := &at
	var first, second tlstest.End
	if edit := identityWays[way]; edit != nil {
		edit(sc, func() *tls.Certificate { return now })
		first = ossltest.Server(t, sc, opts...)
		second = first
	} else {
		of := func(cert tls.Certificate) tlstest.End {
			c := sc.Clone()
			c.Certificates = []tls.Certificate{cert}
			return ossltest.Server(t, c, opts...)
		}
		first, second = of(at), of(then)
	}
	client := ossltest.Client(t, cc)
	tlstest.WantResumed(t, client, first, false)
	tlstest.WantResumed(t, client, first, true)
	now = &then
	if names && then.Leaf.VerifyHostname(tlstest.ServerName) != nil {
		var wrong x509.HostnameError
		if c, _, err := tlstest.TryVisit(client, second); !errors.As(err, &wrong) {
			t.Errorf("resumed %v: %v", c.DidResume, err)
		}
		return
	}
	tlstest.WantResumed(t, client, second, resumes)
	tlstest.WantResumed(t, client, second, true)
}

// TestPairOfCertificatesResumes: a server's RSA and ECDSA certificates have the same names, and a
// session of one is resumed by a client that would get the other certificate. In TLS 1.2 such a
// client does not offer the session's suite.
func TestPairOfCertificatesResumes(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	sc.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256), tlstest.ServerCert(tlstest.RSA2048)}
	server := ossltest.Server(t, sc)
	rsaOnly := ossl.WithSignatureAlgorithms(tls.PSSWithSHA256, tls.PKCS1WithSHA256, tls.PSSWithSHA512)
	alone := cc.Clone()
	alone.ClientSessionCache = nil
	kind := func(c tls.ConnectionState) x509.PublicKeyAlgorithm { return c.PeerCertificates[0].PublicKeyAlgorithm }
	if c, _ := tlstest.Visit(t, ossltest.Client(t, alone, rsaOnly), server); kind(c) != x509.RSA {
		t.Fatalf("%v", kind(c))
	}
	if c, _ := tlstest.Visit(t, ossltest.Client(t, cc), server); kind(c) != x509.ECDSA {
		t.Fatalf("%v", kind(c))
	}
	tlstest.WantResumed(t, ossltest.Client(t, cc, rsaOnly), server, true)
}
