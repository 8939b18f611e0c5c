package httptls_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// A stapler is a certificate with its key.
type stapler struct {
	*x509.Certificate
	key *ecdsa.PrivateKey
}

func newStapler(t *testing.T, serial int64, issuer *stapler, edit func(*x509.Certificate)) *stapler {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "stapler"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true}
	if edit != nil {
		edit(template)
	}
	if issuer == nil {
		issuer = &stapler{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.Certificate, key.Public(), issuer.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &stapler{cert, key}
}

// TestCheckStaple: ossl's and crypto/tls's clients refuse servers whose response, or lack of one, isn't
// good.
func TestCheckStaple(t *testing.T) {
	ca := func(c *x509.Certificate) { c.IsCA = true }
	root, other := newStapler(t, 1, nil, ca), newStapler(t, 1, nil, ca)
	named := func(c *x509.Certificate) { c.DNSNames = []string{"staple.test"} }
	leaf, twin := newStapler(t, 2, root, named), newStapler(t, 2, other, named) // with the same serial number
	must := newStapler(t, 3, root, func(c *x509.Certificate) {
		named(c)
		c.ExtraExtensions = []pkix.Extension{{Id: []int{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 3, 2, 1, 5}}}
	})
	signer := func(serial int64, edit func(*x509.Certificate)) *stapler { return newStapler(t, serial, root, edit) }
	forOCSP := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning} }
	staple := func(by *stapler, of *stapler, edit func(*ocsp.Response)) []byte {
		response := ocsp.Response{Status: ocsp.Good, SerialNumber: of.SerialNumber, IssuerHash: crypto.SHA1,
			ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour), RevokedAt: time.Now().Add(-time.Hour)}
		if by != root && by != other {
			response.Certificate = by.Certificate
		}
		if edit != nil {
			edit(&response)
		}
		issuer := root
		if of == twin {
			issuer = other
		}
		der, err := ocsp.CreateResponse(issuer.Certificate, by.Certificate, response, by.key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	for name, test := range map[string]struct {
		leaf   *stapler
		staple []byte
		good   bool
	}{
		"none":           {leaf, nil, true},
		"none, demanded": {must, nil, false},
		"good":           {leaf, staple(root, leaf, nil), true},
		"good, demanded": {must, staple(root, must, nil), true},
		"good, SHA-256":  {leaf, staple(root, leaf, func(r *ocsp.Response) { r.IssuerHash = crypto.SHA256 }), true},
		"revoked":        {leaf, staple(root, leaf, func(r *ocsp.Response) { r.Status = ocsp.Revoked }), false},
		"unknown":        {leaf, staple(root, leaf, func(r *ocsp.Response) { r.Status = ocsp.Unknown }), false},
		"expired": {leaf, staple(root, leaf, func(r *ocsp.Response) {
			r.NextUpdate = time.Now().Add(-time.Minute)
		}), false},
		"not yet": {leaf, staple(root, leaf, func(r *ocsp.Response) {
			r.ThisUpdate = time.Now().Add(20 * time.Minute)
		}), false},
		"without nextUpdate":   {leaf, staple(root, leaf, func(r *ocsp.Response) { r.NextUpdate = time.Time{} }), false},
		"of another":           {leaf, staple(root, must, nil), false},
		"of another issuer's":  {leaf, staple(signer(7, forOCSP), twin, nil), false},
		"by another authority": {leaf, staple(other, leaf, nil), false},
		"by a responder":       {leaf, staple(signer(4, forOCSP), leaf, nil), true},
		"by another server":    {leaf, staple(signer(5, named), leaf, nil), false},
		"by an expired responder": {leaf, staple(signer(6, func(c *x509.Certificate) {
			forOCSP(c)
			c.NotAfter = time.Now().Add(-time.Minute)
		}), leaf, nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{
				{Certificate: [][]byte{test.leaf.Raw}, PrivateKey: test.leaf.key, OCSPStaple: test.staple}}})
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					conn.(*tls.Conn).Handshake()
					conn.Close()
				}
			}()
			roots := x509.NewCertPool()
			roots.AddCert(root.Certificate)
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				config := &tls.Config{RootCAs: roots, ServerName: "staple.test", MaxVersion: version, VerifyConnection: httptls.CheckStaple}
				for client, dial := range map[string]func() (net.Conn, error){
					"crypto/tls": func() (net.Conn, error) { return tls.Dial("tcp", listener.Addr().String(), config) },
					"ossl":       func() (net.Conn, error) { return ossl.Dial("tcp", listener.Addr().String(), config) },
				} {
					conn, err := dial()
					if err == nil {
						conn.Close()
					}
					var refused *tls.CertificateVerificationError
					if test.good != (err == nil) || err != nil && !errors.As(err, &refused) {
						t.Errorf("%s, %s: %v", client, tls.VersionName(version), err)
					}
				}
			}
		})
	}
	if err := httptls.CheckStaple(tls.ConnectionState{}); err == nil {
		t.Error("a state without a chain is accepted")
	}
}
