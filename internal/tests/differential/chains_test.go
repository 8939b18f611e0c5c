//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

type template = x509.Certificate

// issued returns a chain of a leaf and its issuer, below CA, with their templates edited. Without an
// edit for the issuer, CA has issued the leaf.
func issued(issuer, leaf func(*template)) tls.Certificate {
	o := tlstest.Options{Edit: leaf}
	if issuer != nil {
		o.Issuer = tlstest.NewAuthority("chains issuer", tlstest.CA(), issuer)
		o.Chain = []*x509.Certificate{o.Issuer.Cert}
	}
	return tlstest.New(o)
}

func named(names ...string) func(*template) { return func(c *template) { c.DNSNames = names } }

func excluding(name string) func(*template) {
	return func(c *template) { c.ExcludedDNSDomains = []string{name} }
}

// otherName puts tlstest.ServerName into a name that is not a DNS name.
func otherName(c *template) {
	const utf8 = "\x06\x03\x2a\x03\x04\xa0\x0d\x0c\x0b" + tlstest.ServerName
	list, _ := asn1.Marshal([]asn1.RawValue{{Class: 2, IsCompound: true, Bytes: []byte(utf8)}})
	c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: list}}
}

// many returns n names that begin with prefix.
func many(n int, prefix string) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%sn%d.example.test", prefix, i))
	}
	return names
}

// sameNamed returns a chain with very many certificates that might have issued its leaf, and that no
// root has signed.
func sameNamed() tls.Certificate {
	cert := tlstest.New(tlstest.Options{Issuer: tlstest.NewAuthority("chains same", tlstest.OtherCA(), nil)})
	for range 200 {
		cert.Certificate = append(cert.Certificate, tlstest.NewAuthority("chains same", nil, nil).Cert.Raw)
	}
	return cert
}

// keyed returns a leaf with a key, or a good leaf followed by a certificate with the key. All have
// the name of CA, so that a certificate after a leaf might be its issuer: crypto/x509 compares the
// keys of certificates with the same name.
func keyed(t *testing.T, leaf bool, spki string) tls.Certificate {
	cert := issued(nil, func(c *template) { c.Subject = tlstest.CA().Cert.Subject })
	bad := withKey(t, cert, spki)
	if leaf {
		return bad
	}
	cert.Certificate = append(cert.Certificate, bad.Certificate[0])
	return cert
}

// TestDifferentialChains makes clients verify servers' chains, and servers verify clients' chains,
// in which only constraints concern the names. Each kind of chain was accepted wrongly by a TLS
// library, made it panic or kept it busy: the names of the cases contain the advisories.
func TestDifferentialChains(t *testing.T) {
	defer checkStale(t)
	der, _ := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 16383, 1), E: 65537})
	huge := hex.EncodeToString(der)
	const dsa, unknown = "301c301406072a8648ce380401300902011702010b020104030400020108", "300e300606042a030405030400010203"
	const curve = "303a303206072a8648ce3d02013027020101300d06072a8648ce3d0101" + // the field has 697 elements
		"020202b930080402024b040201160403020170020107020101030400020170"
	mail := func(c *template) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection} }
	noCA := func(c *template) { c.IsCA, c.BasicConstraintsValid = false, false }
	noMail := func(c *template) { c.ExcludedEmailAddresses = []string{"a@evil.test", "a@good.test"} }
	evil := func(c *template) { c.EmailAddresses = []string{"a@evil.test"} }
	only := []string{"good.test"}
	onlyGood := func(c *template) { c.PermittedDNSDomains, c.PermittedURIDomains = only, only }
	zone := func(c *template) { c.DNSNames, c.URIs = only, []*url.URL{{Scheme: "x", Host: "[::1%good.test]"}} }
	long := strings.Repeat("a.", 120) + "test"
	manyExcluded := func(c *template) { c.ExcludedDNSDomains = many(2000, "x") }
	manyNamed := named(append(many(2000, "*."), tlstest.ServerName)...)
	const name, bad, good, worthless = tlstest.ServerName, "bad", "good", "bad even if it isn't verified"
	const onePath, bounded, keyless = "it tries one path only", "it bounds the comparisons of names", "it has no such keys"
	for _, test := range []struct {
		name   string
		cert   tls.Certificate
		dial   string // the name that a client expects
		server string // the verdict on it as a server's chain: good or bad
		client string // and as a client's: also worthless
		fips   string // the reason why libcrypto refuses it in FIPS mode, in other words
	}{
		{"zero byte, CVE-2009-2408", issued(nil, named("server.test\x00.evil.test")), name, bad, good, ""},
		{"address as a DNS name", issued(nil, named("127.0.0.1")), "127.0.0.1", bad, good, ""},
		{"part of a label, CVE-2023-28321", issued(nil, named("s*.a.test", "*r.a.test", "s*r.a.test")), "sr.a.test", bad, good, ""},
		{"part of an IDNA label, CVE-2023-28321", issued(nil, named("x*.a.test")), "xn--l8j.a.test", bad, good, ""},
		{"wildcards elsewhere", issued(nil, named("*", "*.*.test", "a.*.test", "a.b.*", "*.a.b.test")), "a.b.test", bad, good, ""},
		{"wildcard for an address, CVE-2014-0139", issued(nil, named("*.0.0.1")), "127.0.0.1", bad, good, ""},
		{"upper case", issued(nil, named("SERVER.TEST")), name, good, good, ""},
		{"dots at the ends", issued(nil, named("server.test.", ".server.test")), name, bad, good, ""},
		{"list in one name, CVE-2021-44533", issued(nil, named("a, DNS:server.test")), name, bad, good, ""},
		{"name of another kind, CVE-2024-6119", issued(nil, otherName), name, bad, good, ""},
		{"issuer for mail, CVE-2022-21657", issued(mail, nil), name, bad, bad, ""},
		{"issuer without basic constraints, CVE-2002-0862", issued(noCA, nil), name, bad, bad, ""},
		{"excluded, CVE-2025-61727", issued(excluding("a.server.test"), named("*.server.test")), "b.server.test", bad, bad, ""},
		{"excluded, CVE-2026-33810", issued(excluding("A.SERVER.TEST"), named("*.server.test")), "b.server.test", bad, bad, ""},
		{"wildcard, CVE-2026-33810", issued(excluding("a.server.test"), named("*.SERVER.test")), "b.server.test", bad, bad, ""},
		{"dot at the end, excluded", issued(excluding("server.test"), named("server.test.", "a.other")), "a.other", bad, bad, ""},
		{"empty name, CVE-2026-27138", issued(excluding("server.test"), named("", "a.other")), "a.other", good, good, ""},
		{"first of two excluded mailboxes, CVE-2026-27137", issued(noMail, evil), name, bad, bad, ""},
		{"zone in a URI, CVE-2024-45341", issued(onlyGood, zone), "good.test", bad, bad, ""},
		{"end of a permitted label", issued(onlyGood, named("evilgood.test")), "evilgood.test", bad, bad, ""},
		{"many possible issuers, CVE-2026-32280, CVE-2018-16875", sameNamed(), name, bad, bad, onePath},
		{"many names, CVE-2026-27145, CVE-2025-61729", issued(nil, named(many(4000, "")...)), long, bad, good, ""},
		{"many constraints and names, CVE-2025-58187", issued(manyExcluded, manyNamed), name, good, good, bounded},
		{"RSA of 16,384 bits, CVE-2023-29409, CVE-2023-39533", keyed(t, true, huge), name, bad, worthless, keyless},
		{"RSA of 16,384 bits behind a leaf, CVE-2023-29409", keyed(t, false, huge), name, bad, worthless, keyless},
		{"DSA, CVE-2024-24783", keyed(t, true, dsa), name, bad, worthless, keyless},
		{"DSA behind a leaf, CVE-2025-58188", keyed(t, false, dsa), name, good, good, onePath},
		{"EC with parameters, CVE-2022-0778, CVE-2020-0601", keyed(t, true, curve), name, bad, worthless, keyless},
		{"EC with parameters behind a leaf, CVE-2022-0778", keyed(t, false, curve), name, bad, worthless, keyless},
		{"unknown key, CVE-2024-24783", keyed(t, true, unknown), name, bad, worthless, keyless},
		{"unknown key behind a leaf, CVE-2024-24783", keyed(t, false, unknown), name, good, good, onePath},
	} {
		for _, version := range tlstest.Versions {
			run := func(verdict string, role tlstest.Role, mode tls.ClientAuthType) {
				t.Run(fmt.Sprintf("%s/%s, %v/%s", tlstest.VersionName(version), role, mode, test.name), func(t *testing.T) {
					client, server := opts(tlstest.Only(version), tlstest.SendCertificate(test.cert)), opts(tlstest.AskClient(mode))
					if role == tlstest.ClientRole {
						client[1] = func(c *tls.Config) { c.ServerName = test.dial }
						server = opts(tlstest.Certificates(test.cert))
					}
					c := tlstest.Case{Client: tlstest.ClientWith(client...), Server: tlstest.ServerWith(server...)}
					if ossltest.InFIPS && test.fips != "" {
						if err := tlstest.Run(against(role)[1], c).Of(role).HandshakeErr; err == nil {
							t.Errorf("accepted, in spite of: %s", test.fips)
						}
					} else if o := differIn(t, c, against(role)...); verdict == good {
						mustPass(t, o)
					} else {
						mustFail(t, o)
					}
				})
			}
			run(test.server, tlstest.ClientRole, tls.NoClientCert)
			run(test.client, tlstest.ServerRole, tls.RequireAndVerifyClientCert)
			if test.client == worthless {
				run(test.client, tlstest.ServerRole, tls.RequireAnyClientCert)
			}
		}
	}
}
