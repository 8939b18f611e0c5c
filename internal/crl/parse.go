// Package crl parses certificate revocation lists (RFC 5280, section 5), and looks certificates up
// in them.
//
// crypto/x509 parses everything in a list except the entries, of which a list has millions: of each
// this package keeps the serial number and the reason. A list that it can't apply in full is refused
// with its kind in the error: lists of changes (delta lists), lists of several issuers (indirect
// lists), lists of some reasons.
package crl

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/ossl-go/ossl/internal/pemtext"
)

// The reason codes of RFC 5280, section 5.3.1, that mean something here.
const (
	removeFromCRL = 8
	maxReason     = 10
)

// Lists returns the lists in b, which is DER, or PEM with at least one list and nothing else. known
// returns the list with a hash, if it was parsed before.
func Lists(name string, b []byte, known func(sum [sha256.Size]byte) *List) ([]*List, error) {
	var ders [][]byte
	if len(b) > 0 && b[0] == tagSequence {
		ders = [][]byte{b}
	} else {
		blocks, err := pemtext.Decode(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, block := range blocks {
			if block.Type != "X509 CRL" {
				return nil, fmt.Errorf("%s: a PEM block of type %q is not a list", name, block.Type)
			}
			ders = append(ders, block.Bytes)
		}
	}
	if len(ders) == 0 {
		return nil, fmt.Errorf("%s: it holds no list", name)
	}
	lists := make([]*List, len(ders))
	for i, der := range ders {
		sum := sha256.Sum256(der)
		if lists[i] = known(sum); lists[i] != nil {
			continue
		}
		list, err := parse(der)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list.sum, lists[i] = sum, list
	}
	return lists, nil
}

var errMalformed = errors.New("malformed list")

// parse parses a list in DER, and keeps der until its signature is verified.
func parse(der []byte) (*List, error) {
	outer := reader(der)
	body, ok := outer.read(tagSequence)
	if !ok || len(outer) > 0 {
		return nil, errMalformed
	}
	in := reader(body)
	tag, tbsBody, tbs, ok := in.next()
	if !ok || tag != tagSequence {
		return nil, errMalformed
	}
	before, entries, after, ok := split(tbsBody)
	if !ok {
		return nil, errMalformed
	}
	rest, err := parseRest(before, after, in)
	if err != nil {
		return nil, err
	}
	l := &List{
		Issuer: rest.Issuer.String(), Number: rest.Number, ThisUpdate: rest.ThisUpdate, NextUpdate: rest.NextUpdate,
		rawIssuer: rest.RawIssuer, tbs: tbs, signature: rest.Signature, algorithm: rest.SignatureAlgorithm,
	}
	if err := l.check(rest); err != nil {
		return nil, err
	}
	if err := l.revoked.parse(entries); err != nil {
		return nil, err
	}
	return l, nil
}

// split returns the parts of a TBSCertList before, in and after the entries.
func split(tbs []byte) (before, entries, after []byte, ok bool) {
	in := reader(tbs)
	for _, tag := range []byte{tagInteger, tagSequence, tagSequence} { // version, signature, issuer
		if _, ok := in.read(tag); !ok {
			return nil, nil, nil, false
		}
	}
	for in.has(tagUTCTime) || in.has(tagGeneralizedTime) { // thisUpdate, nextUpdate
		if _, _, _, ok := in.next(); !ok {
			return nil, nil, nil, false
		}
	}
	before = tbs[:len(tbs)-len(in)]
	if in.has(tagSequence) {
		if entries, ok = in.read(tagSequence); !ok {
			return nil, nil, nil, false
		}
	}
	after = in
	if in.has(tagContext | tagConstructed) { // extensions
		if _, _, _, ok := in.next(); !ok {
			return nil, nil, nil, false
		}
	}
	return before, entries, after, len(in) == 0
}

// parseRest lets crypto/x509 parse the list without its entries. end is the algorithm and the
// signature.
func parseRest(before, after []byte, end reader) (*x509.RevocationList, error) {
	tbs := appendHeader(nil, tagSequence, len(before)+len(after))
	size := len(tbs) + len(before) + len(after) + len(end)
	der := appendHeader(nil, tagSequence, size)
	der = slices.Concat(der, tbs, before, after, end)
	for range 2 { // algorithm, signature
		if _, _, _, ok := end.next(); !ok {
			return nil, errMalformed
		}
	}
	rest, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, err
	}
	if len(rest.RevokedCertificateEntries) > 0 || len(end) > 0 {
		return nil, errMalformed
	}
	return rest, nil
}

// parse parses the entries of a list, once to count them and once to keep them.
func (t *table) parse(entries []byte) error {
	n := 0
	for in := reader(entries); len(in) > 0; n++ {
		if _, ok := in.read(tagSequence); !ok {
			return errMalformed
		}
	}
	t.entries = make([]entry, 0, n)
	for in := reader(entries); len(in) > 0; {
		body, _ := in.read(tagSequence)
		fields := reader(body)
		serial, ok := fields.read(tagInteger)
		tag, date, _, timed := fields.next()
		if !ok || !isInteger(serial) || !timed || !isTime(tag, date) {
			return errMalformed
		}
		reason := uint8(0)
		if len(fields) > 0 {
			extensions, ok := fields.read(tagSequence)
			if !ok || len(fields) > 0 {
				return errMalformed
			}
			var err error
			if reason, err = reasonIn(extensions); err != nil {
				return err
			}
		}
		// Section 6.3.3, step (k): a certificate that is removed from the list is not revoked. One
		// that is on hold is, as long as it is listed.
		if reason != removeFromCRL {
			t.add(serial, reason)
		}
	}
	t.sort()
	return nil
}

// reasonIn returns the reason code in the extensions of an entry, 0 if there is none.
func reasonIn(extensions []byte) (reason uint8, err error) {
	seen := false
	for in := reader(extensions); len(in) > 0; {
		id, critical, value, ok := readExtension(&in)
		if !ok {
			return 0, errMalformed
		}
		switch string(id) {
		case oidReasonCode:
			enumerated := reader(value)
			code, ok := enumerated.read(tagEnumerated)
			if !ok || len(enumerated) > 0 || len(code) != 1 || code[0] > maxReason || seen {
				return 0, errors.New("malformed reason code")
			}
			reason, seen = code[0], true
		case oidCertificateIssuer:
			return 0, errIndirect
		default:
			if critical {
				return 0, fmt.Errorf("an entry has the unknown critical extension %x", id)
			}
		}
	}
	return reason, nil
}

// readExtension reads an Extension. id is the body of its OBJECT IDENTIFIER.
func readExtension(in *reader) (id []byte, critical bool, value []byte, ok bool) {
	body, ok := in.read(tagSequence)
	if !ok {
		return nil, false, nil, false
	}
	fields := reader(body)
	id, ok = fields.read(tagOID)
	if !ok || !isOID(id) {
		return nil, false, nil, false
	}
	if fields.has(tagBoolean) {
		flag, ok := fields.read(tagBoolean)
		if !ok || len(flag) != 1 || flag[0] != 0 && flag[0] != 0xff {
			return nil, false, nil, false
		}
		critical = flag[0] != 0
	}
	value, ok = fields.read(tagOctetString)
	return id, critical, value, ok && len(fields) == 0
}
