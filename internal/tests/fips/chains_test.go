//go:build cgo || ossl_nocgo

package fips

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
	"github.com/ossl-go/ossl/internal/ossltest"
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

// issue makes a certificate, which is self-signed if parent is nil.
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
func tlsLeaf(c *template) {
	c.DNSNames = []string{"server.test"}
	c.KeyUsage = x509.KeyUsageDigitalSignature
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	c.BasicConstraintsValid = true
}

func usage(u x509.ExtKeyUsage) func(*template) {
	return func(c *template) { c.ExtKeyUsage = []x509.ExtKeyUsage{u} }
}

func keyUsage(u x509.KeyUsage) func(*template) { return func(c *template) { c.KeyUsage = u } }
func names(list ...string) func(*template)     { return func(c *template) { c.DNSNames = list } }
func excluded(list ...string) func(*template) {
	return func(c *template) { c.ExcludedDNSDomains = list }
}
func permitted(list ...string) func(*template) {
	return func(c *template) { c.PermittedDNSDomains = list }
}
func address(ip net.IP) func(*template) { return func(c *template) { c.IPAddresses = []net.IP{ip} } }
func expired(c *template)               { c.NotAfter = time.Now().Add(-time.Minute) }
func critical(c *template)              { c.PermittedDNSDomainsCritical = true }
func noCA(c *template)                  { c.BasicConstraintsValid, c.KeyUsage = true, x509.KeyUsageCertSign }

func and(fs ...func(*template)) func(*template) {
	return func(c *template) {
		for _, f := range fs {
			f(c)
		}
	}
}

func extra(e ...pkix.Extension) func(*template) {
	return func(c *template) { c.ExtraExtensions = append(c.ExtraExtensions, e...) }
}

func ekus(oids ...asn1.ObjectIdentifier) func(*template) {
	return func(c *template) {
		c.ExtKeyUsage = nil
		c.ExtraExtensions = append(c.ExtraExtensions, extension(oidEKU, false, oids))
	}
}

var (
	oidUnknown = asn1.ObjectIdentifier{1, 2, 3, 4}
	oidEKU     = asn1.ObjectIdentifier{2, 5, 29, 37}
	oidPolicyC = asn1.ObjectIdentifier{2, 5, 29, 36}
	oidInhibit = asn1.ObjectIdentifier{2, 5, 29, 54}
	oidNSType  = asn1.ObjectIdentifier{2, 16, 840, 1, 113730, 1, 1}
	oidNoCheck = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 5}
	oidTLSFeat = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}
	oidProxy   = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14}
	oidIPAddr  = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 7}
	oidCRLDP   = asn1.ObjectIdentifier{2, 5, 29, 31}
)

var requireExplicit = extension(oidPolicyC, true, []byte{0x30, 3, 0x80, 1, 0})

// A chainCase is a chain to verify. root, mid and leaf edit its certificates.
type chainCase struct {
	name            string
	root, mid, leaf func(*template)
	further         func(*template) // another intermediate, below mid; nil for none
	selfIssued      bool            // it has mid's name
	trustMid        bool
	trustLeaf       bool
	dial            string
	stricter        string // the reason why libcrypto refuses a chain that crypto/x509 accepts, if it does
}

var chainCases = append(constraintCases, []chainCase{
	{name: "plain", root: ca, mid: ca, leaf: tlsLeaf},
	{name: "ms SGC only", root: ca, mid: ca, leaf: and(tlsLeaf, ekus(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 10, 3, 3}))},
	{name: "ns SGC only", root: ca, mid: ca, leaf: and(tlsLeaf, ekus(asn1.ObjectIdentifier{2, 16, 840, 1, 113730, 4, 1}))},
	{name: "SGC in CA", root: ca, mid: and(ca, ekus(asn1.ObjectIdentifier{2, 16, 840, 1, 113730, 4, 1})), leaf: tlsLeaf},
	{name: "email CA", root: ca, mid: and(ca, usage(x509.ExtKeyUsageEmailProtection)), leaf: tlsLeaf},
	{name: "email root", root: and(ca, usage(x509.ExtKeyUsageEmailProtection)), mid: ca, leaf: tlsLeaf},
	{name: "client only", root: ca, mid: ca, leaf: and(tlsLeaf, usage(x509.ExtKeyUsageClientAuth))},
	{name: "no EKU", root: ca, mid: ca, leaf: and(tlsLeaf, func(c *template) { c.ExtKeyUsage = nil })},
	{name: "explicit policy required, none there", root: ca, mid: and(ca, extra(requireExplicit)), leaf: tlsLeaf},
	{name: "inhibitAny critical", root: ca, mid: and(ca, extra(extension(oidInhibit, true, 0))), leaf: tlsLeaf},
	{name: "mid without BC", root: ca, mid: keyUsage(x509.KeyUsageCertSign), leaf: tlsLeaf},
	{name: "mid KU without certSign", root: ca, mid: and(ca, keyUsage(x509.KeyUsageDigitalSignature)), leaf: tlsLeaf},
	{name: "mid not CA", root: ca, mid: noCA, leaf: tlsLeaf},
	{name: "root without BC, KU certSign", root: keyUsage(x509.KeyUsageCertSign), mid: ca, leaf: tlsLeaf},
	{name: "root with nothing", root: func(c *template) {}, mid: ca, leaf: tlsLeaf},
	{name: "root not CA", root: noCA, mid: ca, leaf: tlsLeaf},
	{name: "root with ns cert type", root: extra(extension(oidNSType, false, asn1.BitString{Bytes: []byte{4}, BitLength: 8})),
		mid: ca, leaf: tlsLeaf},
	{name: "path length", root: and(ca, func(c *template) { c.MaxPathLenZero = true }), mid: ca, leaf: tlsLeaf},
	{name: "expired mid", root: ca, mid: and(ca, expired), leaf: tlsLeaf},
	{name: "expired root", root: and(ca, expired), mid: ca, leaf: tlsLeaf},
	{name: "trusted mid", root: ca, mid: ca, leaf: tlsLeaf, trustMid: true},
	{name: "trusted mid, not CA", root: ca, mid: func(c *template) { c.BasicConstraintsValid = true },
		leaf: tlsLeaf, trustMid: true},
	{name: "trusted mid, no BC at all", root: ca, mid: func(c *template) {}, leaf: tlsLeaf, trustMid: true},
	{name: "trusted mid, KU only", root: ca, mid: keyUsage(x509.KeyUsageCertSign), leaf: tlsLeaf, trustMid: true},
	{name: "trusted leaf", root: ca, mid: ca, leaf: tlsLeaf, trustLeaf: true},
	{name: "trusted leaf, expired", root: ca, mid: ca, leaf: and(tlsLeaf, expired), trustLeaf: true},
	{name: "trusted leaf, email", root: ca, mid: ca, leaf: and(tlsLeaf, usage(x509.ExtKeyUsageEmailProtection)), trustLeaf: true},
	{name: "NC excluded", root: and(ca, excluded("test")), mid: ca, leaf: tlsLeaf},
	{name: "NC permitted other", root: ca, mid: and(ca, permitted("example")), leaf: tlsLeaf},
	{name: "NC permitted other, critical", root: ca, mid: and(ca, permitted("example"), critical),
		leaf: tlsLeaf},
	{name: "NC permitted", root: ca, mid: and(ca, permitted("test")), leaf: tlsLeaf},
	{name: "NC excluded, wildcard leaf", root: and(ca, excluded("a.test")), mid: ca, leaf: and(tlsLeaf, names("*.test"))},
	{name: "NC permitted with dot", root: ca, mid: and(ca, permitted(".test")), leaf: tlsLeaf},
	{name: "NC IP excluded", root: ca, mid: and(ca, func(c *template) {
		c.ExcludedIPRanges = []*net.IPNet{{IP: net.IP{192, 0, 2, 0}, Mask: net.IPMask{255, 255, 255, 0}}}
	}), leaf: and(tlsLeaf, address(net.IP{192, 0, 2, 1}))},
	{name: "NC IP permitted, cert has DNS", root: ca, mid: and(ca, func(c *template) {
		c.PermittedIPRanges = []*net.IPNet{{IP: net.IP{192, 0, 2, 0}, Mask: net.IPMask{255, 255, 255, 0}}}
	}), leaf: tlsLeaf},
	{name: "NC email excluded", root: ca, mid: and(ca, func(c *template) { c.ExcludedEmailAddresses = []string{"test"} }),
		leaf: and(tlsLeaf, func(c *template) { c.EmailAddresses = []string{"a@test"} })},
	{name: "unknown critical", root: ca, mid: ca, leaf: and(tlsLeaf, extra(extension(oidUnknown, true, 1)))},
	{name: "unknown critical in mid", root: ca, mid: and(ca, extra(extension(oidUnknown, true, 1))), leaf: tlsLeaf},
	{name: "unknown critical in root", root: and(ca, extra(extension(oidUnknown, true, 1))), mid: ca, leaf: tlsLeaf},
	{name: "critical CRL DP", root: ca, mid: ca, leaf: and(tlsLeaf, extra(extension(oidCRLDP, true, []byte{0x30, 0})))},
	{name: "critical OCSP nocheck", root: ca, mid: ca, leaf: and(tlsLeaf, extra(extension(oidNoCheck, true, []byte{5, 0})))},
	{name: "critical RFC 3779", root: ca, mid: ca, leaf: and(tlsLeaf, extra(extension(oidIPAddr, true, []byte{0x30, 0})))},
	{name: "critical TLS feature", root: ca, mid: ca, leaf: and(tlsLeaf, extra(extension(oidTLSFeat, true, []int{5})))},
	{name: "proxy certificate", root: ca, mid: ca,
		leaf: and(tlsLeaf, extra(extension(oidProxy, true, []byte{0x30, 0x0c, 0x30, 0x0a, 6, 8, 0x2b, 6, 1, 5, 5, 7, 21, 1})))},
	{name: "ns type: client only", stricter: "its Netscape type is not a server's", root: ca, mid: ca,
		leaf: and(tlsLeaf, extra(extension(oidNSType, false, asn1.BitString{Bytes: []byte{0x80}, BitLength: 8})))},
	{name: "leaf KU keyAgreement only", root: ca, mid: ca, leaf: and(tlsLeaf, keyUsage(x509.KeyUsageKeyAgreement))},
	{name: "leaf KU certSign only", stricter: "its key usage is not for signing handshakes", root: ca, mid: ca,
		leaf: and(tlsLeaf, keyUsage(x509.KeyUsageCertSign))},
	{name: "leaf is a CA", root: ca, mid: ca, leaf: and(tlsLeaf, func(c *template) { c.IsCA = true })},
	{name: "CN only", root: ca, mid: ca,
		leaf: and(tlsLeaf, func(c *template) { c.DNSNames = nil; c.Subject.CommonName = "server.test" })},
	{name: "leaf not yet valid", root: ca, mid: ca,
		leaf: and(tlsLeaf, func(c *template) { c.NotBefore = time.Now().Add(time.Minute) })},
	{name: "IP name", root: ca, mid: ca, leaf: and(tlsLeaf, address(net.IP{192, 0, 2, 1})), dial: "192.0.2.1"},
	{name: "IP as DNS name", root: ca, mid: ca, leaf: and(tlsLeaf, names("192.0.2.1")), dial: "192.0.2.1"},
	{name: "NUL", root: ca, mid: ca, leaf: and(tlsLeaf, names("server.test\x00.evil"))},
	{name: "NUL asked for", stricter: "a name that OpenSSL can't send is refused", root: ca, mid: ca, leaf: tlsLeaf,
		dial: "server.test\x00.evil"},
	{name: "leading dot asked for", root: ca, mid: ca, leaf: tlsLeaf, dial: ".test"},
	{name: "dot", root: ca, mid: ca, leaf: tlsLeaf, dial: "."},
	{name: "two dots", root: ca, mid: ca, leaf: tlsLeaf, dial: "server.test.."},
	{name: "leading dot of a wildcard", root: ca, mid: ca, leaf: and(tlsLeaf, names("*.test")), dial: ".test"},
	{name: "zone", root: ca, mid: ca, leaf: and(tlsLeaf, address(net.ParseIP("fe80::1"))), dial: "fe80::1%eth0"},
	{name: "IDNA", root: ca, mid: ca, leaf: and(tlsLeaf, names("xn--bcher-kva.test")), dial: "bücher.test"},
	{name: "wildcard of a TLD", stricter: "a wildcard stands before two labels or more", root: ca, mid: ca,
		leaf: and(tlsLeaf, names("*.test"))},
	{name: "bare wildcard", root: ca, mid: ca, leaf: and(tlsLeaf, names("*")), dial: "server"},
	{name: "underscore", root: ca, mid: ca, leaf: and(tlsLeaf, names("a_b.test")), dial: "a_b.test"},
}...)

// TestFIPSDifferentialChains verifies chains of many kinds, of servers and of clients, with
// libcrypto and with crypto/x509. A chain that crypto/x509 refuses must be refused. If libcrypto is
// stricter, the case has the reason.
func TestFIPSDifferentialChains(t *testing.T) {
	ossltest.NeedFIPS(t)
	for _, test := range chainCases {
		t.Run(test.name, func(t *testing.T) {
			cert, anchor := test.issue(t)
			want, got := test.verifyServer(cert, anchor)
			test.compare(t, "a server", want, got)
			if want == nil && got == nil && test.stricter != "" {
				t.Errorf("it is accepted now, in spite of: %s", test.stricter)
			}
			want, got = verifyClient(t, cert, anchor)
			test.compare(t, "a client", want, got)
		})
	}
}

// issue makes the chain, and returns it with the certificate to trust.
func (test *chainCase) issue(t *testing.T) (cert tls.Certificate, anchor *x509.Certificate) {
	root := issue(t, "root "+test.name, nil, test.root)
	mid := issue(t, "mid "+test.name, root, test.mid)
	issuer, chain := mid, [][]byte{mid.cert.Raw}
	if test.further != nil {
		name, edit := "further "+test.name, test.further
		if test.selfIssued { // without the identifier OpenSSL would take it for self-signed
			name = "mid " + test.name
			edit = and(edit, func(c *template) { c.AuthorityKeyId = mid.cert.SubjectKeyId })
		}
		issuer = issue(t, name, mid, edit)
		chain = append([][]byte{issuer.cert.Raw}, chain...)
	}
	leaf := issue(t, "leaf", issuer, test.leaf)
	anchor = root.cert
	if test.trustMid {
		anchor = mid.cert
	}
	if test.trustLeaf {
		anchor = leaf.cert
	}
	return tls.Certificate{Certificate: append([][]byte{leaf.cert.Raw}, chain...), PrivateKey: leaf.key}, anchor
}

// compare compares the errors of crypto/x509 (want) and of libcrypto (got) for a chain.
func (test *chainCase) compare(t *testing.T, owner string, want, got error) {
	t.Helper()
	switch {
	case want != nil && got == nil:
		t.Errorf("the chain of %s is accepted; crypto/tls: %v", owner, want)
	case want == nil && got != nil && test.stricter == "":
		t.Errorf("the chain of %s: %v; crypto/tls accepts it", owner, got)
	}
}

func onlyFIPSGroups(c *tls.Config) {
	c.CurvePreferences = ossltest.FIPSGroups
	c.MinVersion = tls.VersionTLS13
}

// verifyServer makes a crypto/tls client (want) and a client in FIPS mode (got) verify the chain.
func (test *chainCase) verifyServer(cert tls.Certificate, anchor *x509.Certificate) (want, got error) {
	set := func(c *tls.Config) {
		onlyFIPSGroups(c)
		c.ServerName = test.dial
		if c.ServerName == "" {
			c.ServerName = tlstest.ServerName
		}
	}
	peer := tlstest.StdServer(tlstest.ServerConfig(onlyFIPSGroups, tlstest.Certificates(cert)))
	std := tlstest.ClientConfig(set, func(c *tls.Config) { c.RootCAs = poolOf(anchor) })
	_, _, want = tlstest.TryVisit(tlstest.StdClient(std), peer)
	roots := ossl.Roots{Certificates: []*x509.Certificate{anchor}}
	ctx, got := ossl.NewContext(tlstest.ClientConfig(set, ossltest.Approved), ossl.WithFIPS(), ossl.WithRoots(roots))
	if got == nil { // else the name is refused
		_, _, got = tlstest.TryVisit(ossltest.ClientOf(ctx), peer)
	}
	return want, got
}

// verifyClient makes a crypto/tls server (want) and a server in FIPS mode (got) verify the chain.
func verifyClient(t *testing.T, cert tls.Certificate, anchor *x509.Certificate) (want, got error) {
	ask := tlstest.AskClient(tls.RequireAndVerifyClientCert)
	client := tlstest.StdClient(tlstest.ClientConfig(onlyFIPSGroups, func(c *tls.Config) {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}))
	std := tlstest.ServerConfig(onlyFIPSGroups, ask, func(c *tls.Config) { c.ClientCAs = poolOf(anchor) })
	_, _, want = tlstest.TryVisit(client, tlstest.StdServer(std))
	roots := ossl.Roots{Certificates: []*x509.Certificate{anchor}}
	ctx := ossltest.NewPlainContext(t, tlstest.ServerConfig(onlyFIPSGroups, ask, ossltest.Approved), ossl.WithFIPS(),
		ossl.WithClientRoots(roots))
	_, _, got = tlstest.TryVisit(client, ossltest.ServerOf(ctx))
	return want, got
}

func poolOf(cert *x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool
}
