package audit

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/wire"
)

// Limits on chains, which the bytes of a server's flight bound too.
const (
	maxCertificate = 1 << 20 // bytes that are parsed
	maxChain       = 64      // certificates that are parsed
	maxFacts       = 4 * maxChain
	maxRSA         = 16384 // bits: larger keys take long to verify with
)

// chainInput is a chain with all that its analysis needs.
type chainInput struct {
	der    [][]byte
	staple []byte         // OCSP response
	scts   []byte         // of the TLS extension
	name   string         // the server's
	roots  *x509.CertPool // the system's if nil
	now    time.Time

	checkCRL func(cert, issuer *x509.Certificate) (revoked bool, reason string) // or nil
}

// unverifiable is the beginning of ChainFacts.TrustError if this program lacks an authority's kind of key.
const unverifiable = "signatures of this kind can't be verified here: "

// analyse describes a chain. It needs no network.
func analyse(in chainInput) ChainFacts {
	facts := ChainFacts{Key: "unknown", InOrder: true, DER: in.der, Staple: in.staple, Stapled: len(in.staple) > 0}
	for _, der := range in.der {
		facts.Bytes += len(der)
	}
	more := max(len(in.der)-maxFacts, 0)
	certificates := make([]*x509.Certificate, len(in.der)-more)
	for i := range certificates {
		var fact CertificateFact
		certificates[i], fact = describe(in.der[i], i)
		facts.Certificates = append(facts.Certificates, fact)
	}
	if more > 0 {
		facts.Certificates[maxFacts-1].Error += fmt.Sprintf(", and neither are the %d after it", more)
	}
	facts.SCTs = countSCTs(in.scts)
	if len(certificates) == 0 || certificates[0] == nil {
		facts.TrustError = "the server sent no certificate"
		if len(certificates) > 0 {
			facts.TrustError = "the leaf can't be parsed: " + facts.Certificates[0].Error
		}
		return facts
	}
	leaf := certificates[0]
	facts.Key = keyName(leaf)
	facts.OCSP, facts.CRL = leaf.OCSPServer, leaf.CRLDistributionPoints
	facts.MustStaple = mustStaple(leaf)
	facts.SCTs += embeddedSCTs(leaf)
	if in.name != "" {
		name := in.name
		if address, err := netip.ParseAddr(name); err == nil {
			name = address.WithZone("").String()
		}
		if err := leaf.VerifyHostname(name); err != nil {
			facts.NameError = strings.TrimPrefix(err.Error(), "x509: ")
		}
	}
	path, err := trustedPath(certificates, in.roots, in.now)
	facts.Trusted = err == nil
	if err != nil {
		facts.TrustError, _, _ = strings.Cut(strings.TrimPrefix(err.Error(), "x509: "), " (possibly because of")
		path = sentPath(certificates)
		if i := slices.IndexFunc(path[1:], func(i int) bool { return certificates[i].PublicKey == nil }); i >= 0 {
			facts.TrustError = unverifiable + keyName(certificates[path[1+i]])
		}
		end := certificates[path[len(path)-1]]
		if !selfIssued(end) && !end.IsCA {
			facts.Missing = end.Issuer.String()
		}
	}
	facts.Path = path
	facts.InOrder = slices.IsSorted(path)
	for i, c := range certificates {
		if i > 0 && c != nil && selfIssued(c) {
			facts.Root = true
		}
		if !slices.Contains(path, i) {
			facts.Needless = append(facts.Needless, i)
		}
	}
	if in.checkCRL != nil {
		lookUp(&facts, certificates, in)
	}
	if facts.Stapled {
		var issuer *x509.Certificate
		if len(path) > 1 {
			issuer = certificates[path[1]]
		}
		verifyStaple(&facts, leaf, issuer, in)
	}
	return facts
}

// lookUp looks the certificates of the path up in revocation lists. A trust anchor is not revoked by a list.
func lookUp(facts *ChainFacts, certificates []*x509.Certificate, in chainInput) {
	for i, at := range facts.Path {
		c, fact := certificates[at], &facts.Certificates[at]
		var issuer *x509.Certificate
		switch {
		case i+1 < len(facts.Path):
			issuer = certificates[facts.Path[i+1]]
		case selfIssued(c):
			continue
		default:
			issuer = anchor(c, in)
		}
		if issuer == nil {
			fact.RevocationUnknown = "its issuer isn't known"
			continue
		}
		if revoked, reason := in.checkCRL(c, issuer); revoked {
			fact.Revoked = reason
		} else {
			fact.RevocationUnknown = reason
		}
	}
}

// describe parses a certificate. The certificate is nil if it can't be parsed.
func describe(der []byte, index int) (*x509.Certificate, CertificateFact) {
	fact := CertificateFact{Bytes: len(der), SHA256: fmt.Sprintf("%x", sha256.Sum256(der))}
	switch {
	case len(der) == 0:
		fact.Error = "it has 0 bytes"
	case len(der) > maxCertificate:
		fact.Error = fmt.Sprintf("it has %d bytes, and those with more than %d are not parsed", len(der), maxCertificate)
	case index >= maxChain:
		fact.Error = fmt.Sprintf("it comes after %d others, and is not parsed", maxChain)
	}
	if fact.Error != "" {
		return nil, fact
	}
	c, err := client.ParseCertificate(der)
	if c == nil {
		fact.Error = strings.TrimPrefix(err.Error(), "x509: ")
		return nil, fact
	}
	if err != nil {
		fact.Refused = strings.TrimPrefix(err.Error(), "x509: ")
	}
	fact.Subject, fact.Issuer = c.Subject.String(), c.Issuer.String()
	fact.NotBefore, fact.NotAfter = inJSON(c.NotBefore), inJSON(c.NotAfter)
	fact.Names = append(fact.Names, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		fact.Names = append(fact.Names, ip.String())
	}
	fact.Key = keyName(c)
	fact.Signature = c.SignatureAlgorithm.String()
	if key, ok := c.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSA {
		fact.Error = fmt.Sprintf("its RSA key has %d bits, and those with more than %d are not used", key.N.BitLen(), maxRSA)
		return nil, fact
	}
	return c, fact
}

var oidEC = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}

// otherCurves are curves that Go doesn't have: SEC 2, RFC 5639.
var otherCurves = map[string]string{
	"1.3.132.0.10":          "secp256k1",
	"1.3.36.3.3.2.8.1.1.7":  "brainpoolP256r1",
	"1.3.36.3.3.2.8.1.1.11": "brainpoolP384r1",
	"1.3.36.3.3.2.8.1.1.13": "brainpoolP512r1",
}

// keyName names the kind of a key, as ChainFacts.Key does.
func keyName(c *x509.Certificate) string {
	switch key := c.PublicKey.(type) {
	case *ecdsa.PublicKey:
		names := map[string]string{"P-224": "secp224r1", "P-256": "secp256r1", "P-384": "secp384r1", "P-521": "secp521r1"}
		return "ECDSA " + names[key.Params().Name]
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", key.N.BitLen())
	case ed25519.PublicKey:
		return "Ed25519"
	}
	if c.PublicKeyAlgorithm == x509.DSA {
		return "DSA"
	}
	var info struct {
		Algorithm struct {
			Algorithm  asn1.ObjectIdentifier
			Parameters asn1.RawValue `asn1:"optional"`
		}
		PublicKey asn1.BitString
	}
	if _, err := asn1.Unmarshal(c.RawSubjectPublicKeyInfo, &info); err != nil {
		return "unknown"
	}
	if curve := (asn1.ObjectIdentifier{}); info.Algorithm.Algorithm.Equal(oidEC) {
		if _, err := asn1.Unmarshal(info.Algorithm.Parameters.FullBytes, &curve); err != nil {
			return "ECDSA unknown"
		}
		if name := otherCurves[curve.String()]; name != "" {
			return "ECDSA " + name
		}
		return "ECDSA " + curve.String()
	}
	names := map[string]string{
		"1.3.101.113":             "Ed448",
		"1.2.840.113549.1.1.10":   "RSA-PSS",
		"2.16.840.1.101.3.4.3.17": "ML-DSA-44",
		"2.16.840.1.101.3.4.3.18": "ML-DSA-65",
		"2.16.840.1.101.3.4.3.19": "ML-DSA-87",
	}
	oid := info.Algorithm.Algorithm.String()
	if name := names[oid]; name != "" {
		return name
	}
	return oid
}

// selfIssued reports whether a certificate names itself as its issuer.
func selfIssued(c *x509.Certificate) bool { return bytes.Equal(c.RawSubject, c.RawIssuer) }

// trustedPath returns the indexes of the certificates on the shortest path from the leaf to a trust
// anchor, which isn't a part of it. If no path is valid now, it disregards the days of the
// certificates that the server sent: the rules judge those apart.
func trustedPath(certificates []*x509.Certificate, roots *x509.CertPool, now time.Time) ([]int, error) {
	chains, err := verify(certificates, roots, now)
	var invalid x509.CertificateInvalidError
	if err != nil && outsideValidity(certificates, now) {
		timeless := make([]*x509.Certificate, len(certificates))
		for i, c := range certificates {
			if c != nil {
				timeless[i] = new(*c)
				timeless[i].NotBefore, timeless[i].NotAfter = now.Add(-time.Hour), now.Add(time.Hour)
			}
		}
		var second error
		if chains, second = verify(timeless, roots, now); second == nil || errors.As(err, &invalid) && invalid.Reason == x509.Expired {
			err = second
		}
	}
	if err != nil {
		return nil, err
	}
	return indexes(certificates, shortest(chains)), nil
}

func verify(certificates []*x509.Certificate, roots *x509.CertPool, now time.Time) ([][]*x509.Certificate, error) {
	intermediates := x509.NewCertPool()
	for _, c := range certificates {
		if c != nil {
			intermediates.AddCert(c)
		}
	}
	return certificates[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func outsideValidity(certificates []*x509.Certificate, now time.Time) bool {
	return slices.ContainsFunc(certificates, func(c *x509.Certificate) bool {
		return c != nil && (now.Before(c.NotBefore) || now.After(c.NotAfter))
	})
}

func shortest(chains [][]*x509.Certificate) []*x509.Certificate {
	return slices.MinFunc(chains, func(a, b []*x509.Certificate) int { return len(a) - len(b) })
}

// indexes returns the places of a chain's certificates among those that were sent, without the
// chain's last one, the trust anchor.
func indexes(sent, chain []*x509.Certificate) []int {
	path := []int{0}
	for _, c := range chain[1:max(len(chain)-1, 1)] {
		for i, s := range sent {
			if i > 0 && s != nil && s.Equal(c) {
				path = append(path, i)
				break
			}
		}
	}
	return path
}

// sentPath returns the indexes of the certificates on a path from the leaf that leads as far as the
// server's certificates do. It goes by names and key identifiers, not by signatures.
func sentPath(sent []*x509.Certificate) []int {
	path := []int{0}
	for {
		last := sent[path[len(path)-1]]
		next := -1
		for i, c := range sent {
			if c == nil || slices.Contains(path, i) || selfIssued(c) || !bytes.Equal(c.RawSubject, last.RawIssuer) {
				continue
			}
			if len(last.AuthorityKeyId) > 0 && len(c.SubjectKeyId) > 0 && !bytes.Equal(last.AuthorityKeyId, c.SubjectKeyId) {
				continue
			}
			next = i
			break
		}
		if next < 0 || selfIssued(last) {
			return path
		}
		path = append(path, next)
	}
}

// mustStaple reports whether a certificate demands a stapled OCSP response (RFC 7633).
func mustStaple(c *x509.Certificate) bool {
	for _, e := range c.Extensions {
		if e.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}) {
			var features []int
			_, err := asn1.Unmarshal(e.Value, &features)
			return err == nil && slices.Contains(features, 5)
		}
	}
	return false
}

// embeddedSCTs counts the certificate's timestamps (RFC 6962, section 3.3).
func embeddedSCTs(c *x509.Certificate) int {
	for _, e := range c.Extensions {
		if e.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}) {
			return countSCTs(octets(e.Value))
		}
	}
	return 0
}

// octets returns the content of an octet string in DER, or nil.
func octets(der []byte) (content []byte) {
	if _, err := asn1.Unmarshal(der, &content); err != nil {
		return nil
	}
	return content
}

// countSCTs counts the elements of a SignedCertificateTimestampList. A malformed list has none.
func countSCTs(list []byte) (n int) {
	r := wire.Reader{Rest: list}
	all := r.List(2)
	for ; len(all.Rest) > 0; n++ {
		if len(all.Vector(2)) == 0 {
			return 0
		}
	}
	if !r.Done() {
		return 0
	}
	return n
}
