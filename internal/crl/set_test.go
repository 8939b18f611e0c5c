package crl

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// setOf returns the set of these lists.
func setOf(t *testing.T, ders ...[]byte) *Set {
	t.Helper()
	var all []*List
	for _, der := range ders {
		lists, err := Lists("x", der, unknown)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, lists...)
	}
	return newSet(all)
}

// TestSignatureNotVerified: a list whose signature couldn't be verified, for want of memory for example, is neither
// passed over for an older one nor taken for another issuer's.
func TestSignatureNotVerified(t *testing.T) {
	ca, leaf := tlstest.CA(), tlstest.ClientCert(tlstest.P256).Leaf
	s := setOf(t, ca.List(1, nil), ca.List(2, nil, leaf))
	s.lists[0].signedBy(ca.Cert, ByX509)
	noMemory := errors.New("no memory")
	fails := func(*x509.Certificate, x509.SignatureAlgorithm, []byte, []byte) (bool, error) { return false, noMemory }
	if v := s.Check(leaf, ca.Cert, fails, time.Now(), 0); v.State != Unverified || v.Err != noMemory {
		t.Errorf("got %+v", v)
	}
	if v := s.Check(leaf, ca.Cert, ByX509, time.Now(), 0); v.State != Revoked || v.Err != nil {
		t.Errorf("afterwards: %+v", v)
	}
}

// TestNextList: an authority's next list, which isn't in force yet, may stand beside the one that is.
func TestNextList(t *testing.T) {
	ca, leaf := tlstest.CA(), tlstest.ClientCert(tlstest.P256).Leaf
	later := func(l *x509.RevocationList) { l.ThisUpdate = time.Now().Add(time.Hour) }
	for _, test := range []struct {
		name            string
		now, next       []byte
		want, wantAlone State
	}{
		{"good", ca.List(1, nil), ca.List(2, later), Good, Early},
		{"revoked now", ca.List(1, nil, leaf), ca.List(2, later), Revoked, Early},
		{"revoked next", ca.List(1, nil), ca.List(2, later, leaf), Revoked, Revoked},
		{"out of date now", ca.List(1, func(l *x509.RevocationList) { l.NextUpdate = time.Now().Add(-time.Minute) }), ca.List(2, later),
			Expired, Early},
	} {
		for name, s := range map[string]*Set{"in order": setOf(t, test.now, test.next), "reversed": setOf(t, test.next, test.now)} {
			if v := s.Check(leaf, ca.Cert, ByX509, time.Now(), 0); v.State != test.want {
				t.Errorf("%s, %s: got %+v", test.name, name, v)
			}
		}
		if v := setOf(t, test.next).Check(leaf, ca.Cert, ByX509, time.Now(), 0); v.State != test.wantAlone {
			t.Errorf("%s, the next list alone: got %+v", test.name, v)
		}
	}
}

// TestListsWithoutNumbers: all lists of an issuer count, even if only some have numbers.
func TestListsWithoutNumbers(t *testing.T) {
	ca, leaf := tlstest.CA(), tlstest.ClientCert(tlstest.P256).Leaf
	from := func(hours int) func(*x509.RevocationList) {
		return func(l *x509.RevocationList) { l.ThisUpdate = l.ThisUpdate.Add(time.Duration(hours-10) * time.Hour) }
	}
	// By the numbers the second is older than the first, and by the dates it is the newest.
	s := setOf(t, ca.List(5, from(1), leaf), ca.List(4, from(3), leaf), ca.List(9, from(2), leaf))
	s.lists[2].Number = nil
	for range s.lists {
		if v := s.Check(leaf, ca.Cert, ByX509, time.Now(), 0); v.State != Revoked {
			t.Errorf("got %+v", v)
		}
		s = newSet(append(s.lists[1:], s.lists[0]))
	}
}
