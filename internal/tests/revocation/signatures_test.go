//go:build cgo || ossl_nocgo

package revocation

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestListSignatures: lists count with every algorithm that certificates may be signed with, and not
// if a bit of the list or of its signature is changed. In FIPS mode the module verifies them.
func TestListSignatures(t *testing.T) {
	for _, test := range []struct {
		kind       tlstest.KeyKind
		algorithms []x509.SignatureAlgorithm
	}{
		{tlstest.RSA2048, []x509.SignatureAlgorithm{x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
			x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS}},
		{tlstest.P256, []x509.SignatureAlgorithm{x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512}},
		{tlstest.P384, []x509.SignatureAlgorithm{x509.ECDSAWithSHA384}},
		{tlstest.P521, []x509.SignatureAlgorithm{x509.ECDSAWithSHA512}},
		{tlstest.Ed25519, []x509.SignatureAlgorithm{x509.PureEd25519}},
	} {
		for _, algorithm := range test.algorithms {
			t.Run(string(test.kind)+"/"+algorithm.String(), func(t *testing.T) {
				if ossltest.InFIPS && test.kind == tlstest.Ed25519 && !ossltest.AtLeast("3.2") {
					t.Skip("the FIPS module of OpenSSL before 3.2 has no Ed25519")
				}
				issuer := tlstest.NewAuthorityOf(test.kind, "lists", tlstest.CA(), nil)
				p := newPair(tls.VersionTLS13, tlstest.ClientRole, issuer, issuer.Cert)
				list := issuer.List(1, func(l *x509.RevocationList) { l.SignatureAlgorithm = algorithm })
				root := tlstest.CA().List(1, nil)
				client, server, _ := p.ends(t, hard(loaded(t, root, list)))
				tlstest.Visit(t, client, server)
				last, number := len(list)-1, len(list)-len(list)/2
				for _, at := range []int{last, number} {
					changed := append([]byte(nil), list...)
					changed[at] ^= 1
					s := new(source)
					s.set("root", root)
					s.set("changed", changed)
					lists, err := ossl.LoadCRLs(s.get)
					if err != nil {
						continue // it can't be parsed
					}
					client, server, _ = p.ends(t, hard(lists))
					refused, _ := p.errs(t, client, server)
					if e := revocationError(t, refused); e.State != ossl.CRLUnverified && e.State != ossl.CRLMissing {
						t.Errorf("byte %d changed: %v", at, e)
					}
				}
			})
		}
	}
}

// TestFIPSModesDontShare: a list that was verified outside of the FIPS module doesn't count in FIPS mode.
func TestFIPSModesDontShare(t *testing.T) {
	ossltest.NeedFIPS(t)
	if ossltest.RequireFIPS {
		t.Skip("OSSL_FIPS=require: there is nothing outside of FIPS mode")
	}
	lists := loaded(t, tlstest.CA().List(1, nil))
	mismatch := tlstest.ServerCert(tlstest.P256)
	mismatch.PrivateKey = tlstest.ServerCert(tlstest.P384).PrivateKey
	broken := tlstest.ServerConfig(tlstest.Certificates(mismatch), func(c *tls.Config) { c.CurvePreferences = ossltest.FIPSGroups })
	if _, err := ossl.NewContext(broken, hard(lists, ossl.WithFIPS())...); err == nil {
		t.Error("a key that isn't the certificate's")
	}
	if _, err := ossl.NewContext(tlstest.ServerConfig(), hard(lists)...); err != nil {
		t.Fatal(err) // also if the Context that wasn't made counted
	}
	config := tlstest.ServerConfig(func(c *tls.Config) { c.CurvePreferences = ossltest.FIPSGroups })
	if _, err := ossl.NewContext(config, hard(lists, ossl.WithFIPS())...); err == nil {
		t.Error("the lists are shared")
	}
	if _, err := ossl.NewContext(config, hard(loaded(t, tlstest.CA().List(1, nil)), ossl.WithFIPS())...); err != nil {
		t.Error(err)
	}
}
