package crl

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// A State is the result of a look-up, in the words of ossl.RevocationState.
type State string

const (
	Good       State = ""           // a list in force doesn't have the certificate
	Revoked    State = "revoked"    // a list has it
	Missing    State = "missing"    // there is no list for it
	Unverified State = "unverified" // the issuer has not signed the list for it, or may not sign lists
	Expired    State = "expired"    // the list's nextUpdate has passed
	Early      State = "not yet"    // the list's thisUpdate is in the future
)

// ErrEarly is the error for lists that are refused since their thisUpdate is in the future.
var ErrEarly = errors.New("that one isn't in force yet")

// A Verdict is the result of a look-up, and the list that it follows from.
type Verdict struct {
	State  State
	List   *List // nil if the state is Missing or Unverified
	Reason int   // if the certificate is revoked: RFC 5280, section 5.3.1
	Err    error // the state is Unverified since a signature couldn't be verified
}

// A Set is the lists that are in force together.
type Set struct {
	lists    []*List
	byIssuer map[string][]*List // by the issuer's encoded name
}

func newSet(lists []*List) *Set {
	s := &Set{lists: lists, byIssuer: make(map[string][]*List)}
	for _, l := range lists {
		s.byIssuer[string(l.rawIssuer)] = append(s.byIssuer[string(l.rawIssuer)], l)
	}
	return s
}

// Lists returns the lists.
func (s *Set) Lists() []*List { return slices.Clone(s.lists) }

// Check looks a certificate up in the lists of its issuer. A certificate that a list of its issuer
// has is revoked even if the list is out of date, or the issuer's certificate isn't for lists.
func (s *Set) Check(cert, issuer *x509.Certificate, verify VerifyFunc, now time.Time, grace time.Duration) Verdict {
	signed, worst := make([]*List, 0, 4), Verdict{State: Missing}
	for _, l := range s.byIssuer[string(issuer.RawSubject)] {
		if !l.scope.covers(cert) {
			continue
		}
		switch ok, err := l.signedBy(issuer, verify); {
		case err != nil: // this list may be the newest, or have the certificate
			return Verdict{State: Unverified, Err: err}
		case ok:
			signed = append(signed, l)
		default:
			worst.State = Unverified
		}
	}
	var good *List
	for _, l := range signed {
		// A list that isn't in force yet doesn't replace the one that is. What it revokes is revoked already.
		if l.olderThan(newest(signed, l, func(other *List) bool { return !other.isEarly(now, grace) || l.isEarly(now, grace) })) {
			continue
		}
		if reason, revoked := l.revoked.find(cert.SerialNumber); revoked {
			return Verdict{State: Revoked, List: l, Reason: int(reason)}
		}
		switch {
		case l.isCurrent(now, grace):
			good = l
		case !l.isEarly(now, grace):
			worst = Verdict{State: Expired, List: l}
		case worst.State != Expired:
			worst = Verdict{State: Early, List: l}
		}
	}
	switch {
	case good == nil:
		return worst
	case issuer.KeyUsage != 0 && issuer.KeyUsage&x509.KeyUsageCRLSign == 0:
		return Verdict{State: Unverified}
	}
	return Verdict{List: good}
}

// newest returns the newest list with the scope of l, which is in lists, among those that count. Each list of that
// scope has the same newest list, so that is looked at even if some have no number, and olderThan is not an order.
func newest(lists []*List, l *List, counts func(*List) bool) (newest *List) {
	for _, other := range lists {
		if other.replaces(l) && counts(other) && (newest == nil || newest.olderThan(other)) {
			newest = other
		}
	}
	return newest
}

// A Store holds a Set that is replaced as a whole. Look-ups take no lock.
type Store struct{ set atomic.Pointer[Set] }

// Set returns the Set in place, nil before the first Replace.
func (s *Store) Set() *Set { return s.set.Load() }

// Replace makes the lists in texts, by their names, those in place. If it returns an error, the lists
// in place stay. now is the time by the machine's clock. Calls must not overlap.
//
// A list whose signature was verified stays until its issuer has signed a newer list with the
// same scope: a change of the files, or of an HTTP server's answers, takes no revocation back.
func (s *Store) Replace(texts map[string][]byte, verify VerifyFunc, now time.Time) error {
	var old []*List
	if set := s.set.Load(); set != nil {
		old = set.lists
	}
	lists, err := parseAll(texts, old)
	if err != nil {
		return err
	}
	for _, l := range old {
		if l.signer.Load() == nil || slices.Contains(lists, l) {
			continue
		}
		next, err := successor(l, lists, verify, now)
		if err != nil {
			return err
		}
		if next == nil {
			lists = append(lists, l)
		}
	}
	s.set.Store(newSet(lists))
	return nil
}

// parseAll parses texts. It takes the lists that haven't changed from old.
func parseAll(texts map[string][]byte, old []*List) ([]*List, error) {
	known := make(map[[sha256.Size]byte]*List)
	for _, l := range old {
		known[l.sum] = l
	}
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	var lists []*List
	for _, name := range names {
		some, err := Lists(name, texts[name], func(sum [sha256.Size]byte) *List { return known[sum] })
		if err != nil {
			return nil, err
		}
		for _, l := range some {
			if known[l.sum] == nil {
				known[l.sum] = l
			}
			if !slices.Contains(lists, known[l.sum]) {
				lists = append(lists, known[l.sum])
			}
		}
	}
	if len(lists) == 0 {
		return nil, errors.New("there is no list")
	}
	return lists, nil
}

// successor returns the list that replaces l, or nil if l must stay since there is none. A list that another
// issuer of the same name has signed, such as an authority with a new key, stands beside l.
func successor(l *List, lists []*List, verify VerifyFunc, now time.Time) (next *List, err error) {
	for _, other := range lists {
		if !other.replaces(l) {
			continue
		}
		signed, err := other.signedBy(l.signer.Load(), verify)
		if err != nil {
			return nil, err
		}
		if signed && (next == nil || next.olderThan(other)) {
			next = other
		}
	}
	switch {
	case next == nil:
		return nil, nil
	case next.olderThan(l):
		return nil, fmt.Errorf("%v is replaced by an older one, of %s", l, next.ThisUpdate.Format(time.RFC3339))
	case l.isCurrent(now, 0) && next.ThisUpdate.After(now):
		return nil, fmt.Errorf("%v is replaced by one of %s: %w", l, next.ThisUpdate.Format(time.RFC3339), ErrEarly)
	}
	return next, nil
}

// Learn verifies the signatures of the lists of these issuers, so that no handshake has to.
func (s *Set) Learn(issuers []*x509.Certificate, verify VerifyFunc) {
	for _, issuer := range issuers {
		for _, l := range s.byIssuer[string(issuer.RawSubject)] {
			_, _ = l.signedBy(issuer, verify) // Check asks again
		}
	}
}
