//go:build cgo

package ossl_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A pki is a certificate with its key.
type pki struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

type template = x509.Certificate

func extension(oid asn1.ObjectIdentifier, critical bool, v any) pkix.Extension {
	der, ok := v.([]byte)
	if !ok {
		var err error
		if der, err = asn1.Marshal(v); err != nil {
			panic(err)
		}
	}
	return pkix.Extension{Id: oid, Critical: critical, Value: der}
}

// issue makes a certificate, by itself without a parent.
func issue(t testing.TB, name string, parent *pki, edit func(*template)) *pki {
	t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c := &template{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	edit(c)
	p, pk := c, key
	if parent != nil {
		p, pk = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, p, key.Public(), pk)
	if err != nil {
		t.Fatal(name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(name, err)
	}
	return &pki{key, cert}
}

func ca(c *template) {
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
}
func serverAndClient(c *template) {
	c.DNSNames = []string{"server.test"}
	c.KeyUsage = x509.KeyUsageDigitalSignature
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	c.BasicConstraintsValid = true
}
func and(fs ...func(*template)) func(*template) {
	return func(c *template) {
		for _, f := range fs {
			f(c)
		}
	}
}

var (
	oidEKU     = asn1.ObjectIdentifier{2, 5, 29, 37}
	oidPolicyC = asn1.ObjectIdentifier{2, 5, 29, 36}
	oidInhibit = asn1.ObjectIdentifier{2, 5, 29, 54}
	oidNSType  = asn1.ObjectIdentifier{2, 16, 840, 1, 113730, 1, 1}
	oidNC      = asn1.ObjectIdentifier{2, 5, 29, 30}
	oidNoCheck = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 5}
	oidTLSFeat = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}
	oidProxy   = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14}
	oidIPAddr  = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 7}
	oidCRLDP   = asn1.ObjectIdentifier{2, 5, 29, 31}
)

// TestFIPSDifferentialChains verifies chains of every make, as a server's and as a client's, by libcrypto and by crypto/x509: what
// the latter refuses must be refused. Where libcrypto is stricter the case says so.
func TestFIPSDifferentialChains(t *testing.T) {
	needFIPS(t)
	extra := func(e ...pkix.Extension) func(*template) {
		return func(c *template) { c.ExtraExtensions = append(c.ExtraExtensions, e...) }
	}
	ekus := func(oids ...asn1.ObjectIdentifier) func(*template) {
		return func(c *template) {
			c.ExtKeyUsage = nil
			c.ExtraExtensions = append(c.ExtraExtensions, extension(oidEKU, false, oids))
		}
	}
	requireExplicit := extension(oidPolicyC, true, []byte{0x30, 3, 0x80, 1, 0})
	for _, test := range []struct {
		name            string
		root, mid, leaf func(*template)
		trustMid        bool
		trustLeaf       bool
		dial            string
		stricter        string // why libcrypto refuses what crypto/x509 takes
	}{
		{name: "plain", root: ca, mid: ca, leaf: serverAndClient},
		{name: "ms SGC only", root: ca, mid: ca, leaf: and(serverAndClient, ekus(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 10, 3, 3}))},
		{name: "ns SGC only", root: ca, mid: ca, leaf: and(serverAndClient, ekus(asn1.ObjectIdentifier{2, 16, 840, 1, 113730, 4, 1}))},
		{name: "SGC in CA", root: ca, mid: and(ca, ekus(asn1.ObjectIdentifier{2, 16, 840, 1, 113730, 4, 1})), leaf: serverAndClient},
		{name: "email CA", root: ca, mid: and(ca, func(c *template) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection} }), leaf: serverAndClient},
		{name: "email root", root: and(ca, func(c *template) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection} }), mid: ca, leaf: serverAndClient},
		{name: "client only", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })},
		{name: "no EKU", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.ExtKeyUsage = nil })},
		{name: "explicit policy required, none there", root: ca, mid: and(ca, extra(requireExplicit)), leaf: serverAndClient},
		{name: "inhibitAny critical", root: ca, mid: and(ca, extra(extension(oidInhibit, true, 0))), leaf: serverAndClient},
		{name: "mid without BC", root: ca, mid: func(c *template) { c.KeyUsage = x509.KeyUsageCertSign }, leaf: serverAndClient},
		{name: "mid KU without certSign", root: ca, mid: and(ca, func(c *template) { c.KeyUsage = x509.KeyUsageDigitalSignature }), leaf: serverAndClient},
		{name: "mid not CA", root: ca, mid: func(c *template) { c.BasicConstraintsValid = true; c.KeyUsage = x509.KeyUsageCertSign }, leaf: serverAndClient},
		{name: "root without BC, KU certSign", root: func(c *template) { c.KeyUsage = x509.KeyUsageCertSign }, mid: ca, leaf: serverAndClient},
		{name: "root with nothing", root: func(c *template) {}, mid: ca, leaf: serverAndClient},
		{name: "root not CA", root: func(c *template) { c.BasicConstraintsValid = true; c.KeyUsage = x509.KeyUsageCertSign }, mid: ca, leaf: serverAndClient},
		{name: "root with ns cert type", root: and(extra(extension(oidNSType, false, asn1.BitString{Bytes: []byte{4}, BitLength: 8}))), mid: ca, leaf: serverAndClient},
		{name: "path length", root: and(ca, func(c *template) { c.MaxPathLenZero = true }), mid: ca, leaf: serverAndClient},
		{name: "expired mid", root: ca, mid: and(ca, func(c *template) { c.NotAfter = time.Now().Add(-time.Minute) }), leaf: serverAndClient},
		{name: "expired root", root: and(ca, func(c *template) { c.NotAfter = time.Now().Add(-time.Minute) }), mid: ca, leaf: serverAndClient},
		{name: "trusted mid", root: ca, mid: ca, leaf: serverAndClient, trustMid: true},
		{name: "trusted mid, not CA", root: ca, mid: func(c *template) { c.BasicConstraintsValid = true }, leaf: serverAndClient, trustMid: true},
		{name: "trusted mid, no BC at all", root: ca, mid: func(c *template) {}, leaf: serverAndClient, trustMid: true},
		{name: "trusted mid, KU only", root: ca, mid: func(c *template) { c.KeyUsage = x509.KeyUsageCertSign }, leaf: serverAndClient, trustMid: true},
		{name: "trusted leaf", root: ca, mid: ca, leaf: serverAndClient, trustLeaf: true},
		{name: "trusted leaf, expired", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.NotAfter = time.Now().Add(-time.Minute) }), trustLeaf: true},
		{name: "trusted leaf, email", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection} }), trustLeaf: true},
		{name: "NC excluded", root: and(ca, func(c *template) { c.ExcludedDNSDomains = []string{"test"} }), mid: ca, leaf: serverAndClient},
		{name: "NC permitted other", root: ca, mid: and(ca, func(c *template) { c.PermittedDNSDomains = []string{"example"} }), leaf: serverAndClient},
		{name: "NC permitted other, critical", root: ca, mid: and(ca, func(c *template) { c.PermittedDNSDomainsCritical = true; c.PermittedDNSDomains = []string{"example"} }), leaf: serverAndClient},
		{name: "NC permitted", root: ca, mid: and(ca, func(c *template) { c.PermittedDNSDomains = []string{"test"} }), leaf: serverAndClient},
		{name: "NC excluded, wildcard leaf", root: and(ca, func(c *template) { c.ExcludedDNSDomains = []string{"a.test"} }), mid: ca, leaf: and(serverAndClient, func(c *template) { c.DNSNames = []string{"*.test"} })},
		{name: "NC permitted with dot", root: ca, mid: and(ca, func(c *template) { c.PermittedDNSDomains = []string{".test"} }), leaf: serverAndClient},
		{name: "NC IP excluded", root: ca, mid: and(ca, func(c *template) {
			c.ExcludedIPRanges = []*net.IPNet{{IP: net.IP{192, 0, 2, 0}, Mask: net.IPMask{255, 255, 255, 0}}}
		}), leaf: and(serverAndClient, func(c *template) { c.IPAddresses = []net.IP{{192, 0, 2, 1}} })},
		{name: "NC IP permitted, cert has DNS", root: ca, mid: and(ca, func(c *template) {
			c.PermittedIPRanges = []*net.IPNet{{IP: net.IP{192, 0, 2, 0}, Mask: net.IPMask{255, 255, 255, 0}}}
		}), leaf: serverAndClient},
		{name: "NC email excluded", root: ca, mid: and(ca, func(c *template) { c.ExcludedEmailAddresses = []string{"test"} }), leaf: and(serverAndClient, func(c *template) { c.EmailAddresses = []string{"a@test"} })},
		{name: "unknown critical", root: ca, mid: ca, leaf: and(serverAndClient, extra(extension(asn1.ObjectIdentifier{1, 2, 3, 4}, true, 1)))},
		{name: "unknown critical in mid", root: ca, mid: and(ca, extra(extension(asn1.ObjectIdentifier{1, 2, 3, 4}, true, 1))), leaf: serverAndClient},
		{name: "unknown critical in root", root: and(ca, extra(extension(asn1.ObjectIdentifier{1, 2, 3, 4}, true, 1))), mid: ca, leaf: serverAndClient},
		{name: "critical CRL DP", root: ca, mid: ca, leaf: and(serverAndClient, extra(extension(oidCRLDP, true, []byte{0x30, 0})))},
		{name: "critical OCSP nocheck", root: ca, mid: ca, leaf: and(serverAndClient, extra(extension(oidNoCheck, true, []byte{5, 0})))},
		{name: "critical RFC 3779", root: ca, mid: ca, leaf: and(serverAndClient, extra(extension(oidIPAddr, true, []byte{0x30, 0})))},
		{name: "critical TLS feature", root: ca, mid: ca, leaf: and(serverAndClient, extra(extension(oidTLSFeat, true, []int{5})))},
		{name: "proxy certificate", root: ca, mid: ca, leaf: and(serverAndClient, extra(extension(oidProxy, true, []byte{0x30, 0x0c, 0x30, 0x0a, 6, 8, 0x2b, 6, 1, 5, 5, 7, 21, 1})))},
		{name: "ns type: client only", stricter: "its Netscape type is not a server's", root: ca, mid: ca, leaf: and(serverAndClient, extra(extension(oidNSType, false, asn1.BitString{Bytes: []byte{0x80}, BitLength: 8})))},
		{name: "leaf KU keyAgreement only", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.KeyUsage = x509.KeyUsageKeyAgreement })},
		{name: "leaf KU certSign only", stricter: "its key usage is not for signing handshakes", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.KeyUsage = x509.KeyUsageCertSign })},
		{name: "leaf is a CA", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.IsCA = true })},
		{name: "CN only", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.DNSNames = nil; c.Subject.CommonName = "server.test" })},
		{name: "leaf not yet valid", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.NotBefore = time.Now().Add(time.Minute) })},
		{name: "IP name", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.IPAddresses = []net.IP{{192, 0, 2, 1}} }), dial: "192.0.2.1"},
		{name: "IP as DNS name", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.DNSNames = []string{"192.0.2.1"} }), dial: "192.0.2.1"},
		{name: "NUL", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.DNSNames = []string{"server.test\x00.evil"} })},
		{name: "NUL asked for", root: ca, mid: ca, leaf: serverAndClient, dial: "server.test\x00.evil"},
		{name: "leading dot asked for", root: ca, mid: ca, leaf: serverAndClient, dial: ".test"},
		{name: "dot", root: ca, mid: ca, leaf: serverAndClient, dial: "."},
		{name: "two dots", root: ca, mid: ca, leaf: serverAndClient, dial: "server.test.."},
		{name: "leading dot of a wildcard", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.DNSNames = []string{"*.test"} }), dial: ".test"},
		{name: "zone", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.IPAddresses = []net.IP{net.ParseIP("fe80::1")} }), dial: "fe80::1%eth0"},
		{name: "IDNA", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.DNSNames = []string{"xn--bcher-kva.test"} }), dial: "bücher.test"},
		{name: "wildcard of a TLD", stricter: "a wildcard stands before two labels or more", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.DNSNames = []string{"*.test"} })},
		{name: "bare wildcard", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.DNSNames = []string{"*"} }), dial: "server"},
		{name: "underscore", root: ca, mid: ca, leaf: and(serverAndClient, func(c *template) { c.DNSNames = []string{"a_b.test"} }), dial: "a_b.test"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := issue(t, "root "+test.name, nil, test.root)
			mid := issue(t, "mid "+test.name, root, test.mid)
			leaf := issue(t, "leaf", mid, test.leaf)
			if test.dial == "" {
				test.dial = "server.test"
			}
			anchor := root.cert
			if test.trustMid {
				anchor = mid.cert
			}
			if test.trustLeaf {
				anchor = leaf.cert
			}
			cert := tls.Certificate{Certificate: [][]byte{leaf.cert.Raw, mid.cert.Raw}, PrivateKey: leaf.key}
			pool := x509.NewCertPool()
			pool.AddCert(anchor)
			for _, server := range []bool{true, false} {
				var want, got error
				only := func(c *tls.Config) { c.CurvePreferences = fipsGroups; c.MinVersion = tls.VersionTLS13 }
				if server {
					set := func(c *tls.Config) { only(c); c.ServerName = test.dial }
					_, _, want = tryVisit(stdClient(tlstest.ClientConfig(set, func(c *tls.Config) { c.RootCAs = pool })), stdServer(tlstest.ServerConfig(only, certificates(cert))))
					ctx := newPlainContext(t, tlstest.ClientConfig(set, approved), ossl.WithFIPS(), ossl.WithRoots(ossl.Roots{Certificates: []*x509.Certificate{anchor}}))
					_, _, got = tryVisit(clientOf(ctx), stdServer(tlstest.ServerConfig(only, certificates(cert))))
				} else {
					ask := askClient(tls.RequireAndVerifyClientCert)
					client := stdClient(tlstest.ClientConfig(only, func(c *tls.Config) {
						c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
					}))
					_, _, want = tryVisit(client, stdServer(tlstest.ServerConfig(only, ask, func(c *tls.Config) { c.ClientCAs = pool })))
					ctx := newPlainContext(t, tlstest.ServerConfig(only, ask, approved), ossl.WithFIPS(), ossl.WithClientRoots(ossl.Roots{Certificates: []*x509.Certificate{anchor}}))
					_, _, got = tryVisit(client, serverOf(ctx))
				}
				switch {
				case want != nil && got == nil:
					t.Errorf("a chain of a server: %v: it is accepted; crypto/tls: %v", server, want)
				case want == nil && got != nil && test.stricter == "":
					t.Errorf("a chain of a server: %v: %v; crypto/tls accepts it", server, got)
				case want == nil && got == nil && test.stricter != "" && server:
					t.Errorf("it is accepted now, in spite of: %s", test.stricter)
				}
			}
		})
	}
}
