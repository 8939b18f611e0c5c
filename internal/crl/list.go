package crl

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A List is a list of revoked certificates. Only its knowledge about its signature changes.
type List struct {
	Issuer                 string
	Number                 *big.Int // nil if it has none
	ThisUpdate, NextUpdate time.Time

	sum       [sha256.Size]byte // of its DER
	rawIssuer []byte
	scope     scope
	revoked   table

	signature []byte
	algorithm x509.SignatureAlgorithm

	signer    atomic.Pointer[x509.Certificate] // with whose key the signature was verified
	mu        sync.Mutex                       // one verification at a time
	tbs       []byte                           // guarded by mu; the signed bytes, until there is a signer
	strangers [][]byte                         // guarded by mu; the keys with which the signature is wrong
}

// maxStrangers bounds the keys that a list remembers. There are several only if authorities have the
// same name.
const maxStrangers = 16

// A VerifyFunc verifies the signature of signed bytes with the key of a certificate. ok reports
// whether it is right; with an error this is not known.
type VerifyFunc func(issuer *x509.Certificate, algorithm x509.SignatureAlgorithm, signed, signature []byte) (ok bool, err error)

// ByX509 is a VerifyFunc of crypto/x509.
func ByX509(issuer *x509.Certificate, algorithm x509.SignatureAlgorithm, signed, signature []byte) (ok bool, err error) {
	return issuer.CheckSignature(algorithm, signed, signature) == nil, nil
}

// Len returns the number of revoked certificates.
func (l *List) Len() int { return l.revoked.len() }

// Verified reports whether the signature was verified with the key of an issuer.
func (l *List) Verified() bool { return l.signer.Load() != nil }

// signedBy reports whether the list has the signature of an issuer. It is verified once: with
// another key, the same signature is wrong.
func (l *List) signedBy(issuer *x509.Certificate, verify VerifyFunc) (bool, error) {
	if s := l.signer.Load(); s != nil {
		return sameKey(s, issuer), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.signer.Load(); s != nil {
		return sameKey(s, issuer), nil
	}
	key := issuer.RawSubjectPublicKeyInfo
	if slices.ContainsFunc(l.strangers, func(other []byte) bool { return bytes.Equal(other, key) }) {
		return false, nil
	}
	ok, err := verify(issuer, l.algorithm, l.tbs, l.signature)
	switch {
	case err != nil:
		return false, err
	case ok:
		l.signer.Store(issuer)
		l.tbs, l.strangers = nil, nil
	case len(l.strangers) < maxStrangers:
		l.strangers = append(l.strangers, key)
	}
	return ok, nil
}

func sameKey(a, b *x509.Certificate) bool {
	return bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo)
}

// replaces reports whether two lists have the same issuer's name and scope.
func (l *List) replaces(old *List) bool {
	return bytes.Equal(l.rawIssuer, old.rawIssuer) && l.scope.raw == old.scope.raw
}

// olderThan reports whether the issuer made the list before another one of the same scope.
func (l *List) olderThan(other *List) bool {
	if l.Number != nil && other.Number != nil {
		if n := l.Number.Cmp(other.Number); n != 0 {
			return n < 0
		}
	}
	return l.ThisUpdate.Before(other.ThisUpdate)
}

// isCurrent reports whether the list is in force at the time now.
func (l *List) isCurrent(now time.Time, grace time.Duration) bool {
	return !now.Before(l.ThisUpdate.Add(-grace)) && !now.After(l.NextUpdate.Add(grace))
}

// isEarly reports whether the list isn't in force yet at the time now.
func (l *List) isEarly(now time.Time, grace time.Duration) bool {
	return now.Before(l.ThisUpdate.Add(-grace))
}

func (l *List) String() string {
	return fmt.Sprintf("the list of %s of %s", l.Issuer, l.ThisUpdate.Format(time.RFC3339))
}
