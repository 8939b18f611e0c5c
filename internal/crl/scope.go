package crl

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
)

// The bodies of the object identifiers of entries' extensions: RFC 5280, section 5.3.
const (
	oidReasonCode        = "\x55\x1d\x15"
	oidCertificateIssuer = "\x55\x1d\x1d"
)

// The extensions of lists: RFC 5280, section 5.2.
var (
	oidNumber       = asn1.ObjectIdentifier{2, 5, 29, 20}
	oidDelta        = asn1.ObjectIdentifier{2, 5, 29, 27}
	oidDistribution = asn1.ObjectIdentifier{2, 5, 29, 28}
	oidAuthorityKey = asn1.ObjectIdentifier{2, 5, 29, 35}
)

var (
	errDelta    = errors.New("a delta list is not supported")
	errIndirect = errors.New("an indirect list, which has other issuers' certificates, is not supported")
)

// A scope is the part of an issuer's certificates that a list is for: the extension
// issuingDistributionPoint, RFC 5280, section 5.2.5.
type scope struct {
	raw       string   // the extension's value: lists with the same scope replace each other
	named     bool     // the list is for the certificates that name a URI among uris
	uris      []string // of the distribution point
	usersOnly bool
	casOnly   bool
}

// covers reports whether a list of this scope has the certificate if it is revoked: section 6.3.3,
// step (b)(2).
func (s *scope) covers(cert *x509.Certificate) bool {
	isCA := cert.BasicConstraintsValid && cert.IsCA
	if s.usersOnly && isCA || s.casOnly && !isCA {
		return false
	}
	return !s.named || slices.ContainsFunc(cert.CRLDistributionPoints, func(uri string) bool { return slices.Contains(s.uris, uri) })
}

// check refuses a list that can't be applied in full. rest is the list without its entries.
func (l *List) check(rest *x509.RevocationList) error {
	seen := make(map[string]bool)
	for _, e := range rest.Extensions {
		id := e.Id.String()
		if seen[id] {
			return fmt.Errorf("the list has the extension %s twice", id)
		}
		seen[id] = true
		switch {
		case e.Id.Equal(oidDelta):
			return errDelta
		case e.Id.Equal(oidDistribution):
			var err error
			if l.scope, err = parseScope(e.Value); err != nil {
				return err
			}
		case e.Id.Equal(oidNumber):
			if rest.Number == nil || rest.Number.Sign() < 0 {
				return errors.New("malformed number")
			}
		case e.Critical && !e.Id.Equal(oidAuthorityKey):
			return fmt.Errorf("the list has the unknown critical extension %s", id)
		}
	}
	switch rest.SignatureAlgorithm {
	case x509.UnknownSignatureAlgorithm:
		return errors.New("the list is signed with an unknown algorithm")
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1, x509.DSAWithSHA256:
		return x509.InsecureAlgorithmError(rest.SignatureAlgorithm)
	}
	if rest.NextUpdate.IsZero() {
		return errors.New("the list has no nextUpdate, which RFC 5280 demands")
	}
	if rest.NextUpdate.Before(rest.ThisUpdate) {
		return errors.New("the list's nextUpdate is before its thisUpdate")
	}
	return nil
}

// parseScope parses an IssuingDistributionPoint.
func parseScope(value []byte) (s scope, err error) {
	malformed := errors.New("malformed issuingDistributionPoint")
	outer := reader(value)
	body, ok := outer.read(tagSequence)
	if !ok || len(outer) > 0 {
		return s, malformed
	}
	s.raw = string(value)
	last := -1
	for in := reader(body); len(in) > 0; {
		tag, field, _, ok := in.next()
		number := int(tag &^ (tagContext | tagConstructed))
		if !ok || tag&tagContext == 0 || number <= last || tag&tagConstructed != 0 != (number == 0) {
			return s, malformed
		}
		last = number
		isSet := len(field) == 1 && field[0] == 0xff
		if number != 0 && number != 3 && !isSet { // false is the default, which DER leaves out
			return s, malformed
		}
		switch number {
		case 0:
			s.named = true
			if s.uris, err = parseURIs(field); err != nil {
				return s, err
			}
		case 1:
			s.usersOnly = true
		case 2:
			s.casOnly = true
		case 3:
			return s, errors.New("a list of some reasons only is not supported")
		case 4:
			return s, errIndirect
		case 5:
			return s, errors.New("a list of attribute certificates is not supported")
		default:
			return s, malformed
		}
	}
	if s.usersOnly && s.casOnly {
		return s, malformed
	}
	return s, nil
}

// parseURIs parses a DistributionPointName that consists of URIs.
func parseURIs(field []byte) (uris []string, err error) {
	const fullName, uri = tagContext | tagConstructed, tagContext | 6
	choice := reader(field)
	names, ok := choice.read(fullName)
	for in := reader(names); ok && len(in) > 0; {
		var name []byte
		if name, ok = in.read(uri); ok {
			uris = append(uris, string(name))
		}
	}
	if !ok || len(choice) > 0 || len(uris) == 0 {
		return nil, errors.New("a partition whose distribution point has a name other than a URI is not supported")
	}
	return uris, nil
}
