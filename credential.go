package ossl

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/ossl-go/ossl/internal/chain"
	"github.com/ossl-go/ossl/internal/heldkey"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
	"github.com/ossl-go/ossl/internal/wire"
)

// credentialCache keeps certificates that are ready for libssl, so that GetCertificate may return
// the same one for each connection without its key being converted each time. An entry is found by
// the chain's bytes, the key, the staple and the SCTs, and never by a pointer to the
// tls.Certificate, whose contents may change. Since an entry contains a private key, it is removed
// if it has not been used for a while: the certificate was replaced.
type credentialCache struct {
	mu       sync.Mutex
	now      func() time.Time
	recent   recentMap[credentialKey, *cachedCredential] // guarded by mu
	observer *observer
}

// A cachedCredential is made by the first handshake that needs it. Others wait for that.
type cachedCredential struct {
	mu   sync.Mutex // held while it is made
	cred atomic.Pointer[libssl.Credential]
}

type credentialKey struct {
	sum     [sha256.Size]byte
	key     any    // a hash of the key or, if only its owner knows its numbers, a pointer
	fips    bool   // for Contexts in FIPS mode
	schemes string // the schemesKey of the key's signature algorithms, if they are limited
}

func newCredentialCache(o *observer, most int64) *credentialCache {
	c := &credentialCache{now: time.Now, observer: o}
	c.recent.max, c.recent.newcomers, c.recent.idle = most, most, contextIdle
	c.recent.evicted = func() { o.certificates.evictions.Add(1) }
	cache := weak.Make(c) // which may be collected, with its keys, before the timer ends
	c.recent.expired = func() {
		if c := cache.Value(); c != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.recent.expire(c.now())
		}
	}
	return c
}

// A credentialRule has a Context's requirements for certificates.
type credentialRule struct {
	fips       bool
	host       *negotiate.Host
	signatures []tls.SignatureScheme // those that the Context uses
	ordered    bool                  // by WithSignatureAlgorithms
}

// limit returns the algorithms that a certificate may sign with, or nil if there is no limit.
// schemes are its SupportedSignatureAlgorithms. As crypto/tls does, limit passes over unknown ones
// and repetitions.
func (r *credentialRule) limit(schemes []tls.SignatureScheme) ([]tls.SignatureScheme, error) {
	if schemes == nil {
		return nil, nil
	}
	var known []tls.SignatureScheme
	for _, s := range schemes {
		if !negotiate.KnownSignature(s) || slices.Contains(known, s) {
			continue
		}
		if r.fips && !negotiate.FIPSSignature(s) {
			return nil, fmt.Errorf("SupportedSignatureAlgorithms: %v is not approved for FIPS mode, or not in the module", s)
		}
		known = append(known, s)
	}
	if len(schemes) > 0 && len(known) == 0 {
		return nil, errors.New("SupportedSignatureAlgorithms: " + negotiate.WhyNoSignature(schemes[0]))
	}
	var left []tls.SignatureScheme
	if r.ordered {
		left = negotiate.Keep(r.signatures, func(s tls.SignatureScheme) bool { return slices.Contains(known, s) })
	} else {
		left = negotiate.Keep(known, func(s tls.SignatureScheme) bool { return slices.Contains(r.signatures, s) })
	}
	if len(left) == 0 {
		return nil, fmt.Errorf("SupportedSignatureAlgorithms: none of %v is among those in use, %v", schemes, r.signatures)
	}
	return r.host.ForCertificate(left)
}

// get returns the credential for cert, for a Context with this rule.
func (c *credentialCache) get(cert *tls.Certificate, rule *credentialRule) (*libssl.Credential, error) {
	e := new(cachedCredential)
	key, cacheable := keyOf(cert, rule)
	if cacheable {
		e = c.entry(key, cert)
		if cred := e.cred.Load(); cred != nil {
			return cred, nil
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if cred := e.cred.Load(); cred != nil {
		return cred, nil
	}
	c.observer.certificates.misses.Add(1)
	own := *cert // cert belongs to the user and must not change
	cred, err := newCredential(&own, rule)
	if err == nil { // a failure is not remembered
		e.cred.Store(cred)
	}
	return cred, err
}

// entry returns the entry for a certificate.
func (c *credentialCache) entry(key credentialKey, cert *tls.Certificate) *cachedCredential {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.recent.get(key, now)
	if !ok {
		e = new(cachedCredential)
		c.recent.put(key, e, certificateSize(cert), now)
	}
	return e
}

func keyOf(cert *tls.Certificate, rule *credentialRule) (key credentialKey, ok bool) {
	allowed, err := rule.limit(cert.SupportedSignatureAlgorithms)
	if err != nil { // newCredential reports it
		return key, false
	}
	key.fips = rule.fips
	key.schemes = schemesKey(allowed)
	h := sha256.New()
	part := func(b []byte) {
		n := len(b)
		h.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		h.Write(b)
	}
	for _, der := range cert.Certificate {
		part(der)
	}
	part(nil)
	part(cert.OCSPStaple)
	for _, sct := range cert.SignedCertificateTimestamps {
		part(sct)
	}
	h.Sum(key.sum[:0])
	if sum, ok := keySum(cert.PrivateKey); ok {
		key.key = sum
	} else if canCompare(cert.PrivateKey) { // crypto/mldsa's, or any other Signer
		key.key = cert.PrivateKey
	} else {
		return key, false
	}
	return key, true
}

// keySum returns a hash of a key's secret number. The chain, which is hashed too, has the public ones. Servers
// that read the key's file for each connection, to notice a renewal, have the same key with another pointer
// each time.
func keySum(key crypto.PrivateKey) (sum [sha256.Size]byte, ok bool) {
	defer func() { _ = recover() }() // of a key that has no numbers, which newCredential refuses
	switch k := key.(type) {
	case *rsa.PrivateKey:
		secret := k.D.Bytes()
		defer clear(secret)
		return sha256.Sum256(secret), true
	case *ecdsa.PrivateKey:
		secret, err := k.Bytes() // other callers have the same slice: docs/upstream/ecdsa-bytes.md
		return sha256.Sum256(secret), err == nil
	case ed25519.PrivateKey:
		return sha256.Sum256(k), true
	}
	return sum, false
}

// schemesKey returns a list of signature algorithms in a form that can be compared.
func schemesKey(schemes []tls.SignatureScheme) string {
	var key []byte
	for _, s := range schemes {
		key = append(key, byte(s>>8), byte(s))
	}
	return string(key)
}

// canCompare reports whether k may be a map's key.
func canCompare(k any) (ok bool) {
	defer func() { _ = recover() }()
	return k == k
}

// A ContextSigner is a [crypto.Signer] whose signatures can be given up, such as a client of a key
// management service (go.dev/issue/56508). If the PrivateKey of a [tls.Certificate] implements it,
// handshakes call SignContext in place of Sign. Otherwise SignContext is like Sign: digest is the
// message itself if opts has no hash function.
//
// ctx has the values of the context of HandshakeContext, and is cancelled as soon as the handshake
// can't succeed any more: when that context is done, a deadline passes, Close is called, or the peer
// hangs up. [context.Cause] returns which it was.
//
// If the key is a struct that embeds a ContextSigner, such as a [github.com/ossl-go/ossl/keys.Key],
// handshakes call its Sign, which may be its own, and not its SignContext, which may not be.
type ContextSigner interface {
	crypto.Signer
	SignContext(ctx context.Context, rand io.Reader, digest []byte, opts crypto.SignerOpts) (signature []byte, err error)
}

// newCredential converts cert, and sets its Leaf. Its errors describe the problem; the caller adds
// the field.
func newCredential(cert *tls.Certificate, rule *credentialRule) (*libssl.Credential, error) {
	if len(cert.Certificate) == 0 {
		return nil, errors.New("certificate chain is empty")
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("leaf certificate: %w", err)
	}
	if cert.Leaf == nil {
		cert.Leaf = leaf
	}
	cred, err := convert(cert, leaf, rule)
	if err == nil {
		cred.SetIdentity(sessionIdentity(leaf))
	}
	return cred, err
}

func convert(cert *tls.Certificate, leaf *x509.Certificate, rule *credentialRule) (*libssl.Credential, error) {
	signer, ok := cert.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("private key of type %T does not implement crypto.Signer", cert.PrivateKey)
	}
	if v := reflect.ValueOf(signer); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("private key is a nil %T", signer)
	}
	if err := rule.checkMLDSA(leaf); err != nil {
		return nil, err
	}
	if public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(leaf.PublicKey) {
		return nil, errors.New("private key does not belong to the leaf certificate")
	}
	if rule.fips && !chain.KeyAllowed(leaf.PublicKey) {
		return nil, errors.New("FIPS mode requires RSA keys of 2048 bits or more, ECDSA keys on P-256, P-384 or P-521, " +
			"or Ed25519 or ML-DSA keys if the module has them")
	}
	if len(cert.OCSPStaple) > 0 {
		if err := checkStaple(cert.OCSPStaple); err != nil {
			return nil, err
		}
	}
	scts, err := sctList(cert.SignedCertificateTimestamps)
	if err != nil {
		return nil, err
	}
	allowed, err := rule.limit(cert.SupportedSignatureAlgorithms)
	if err != nil {
		return nil, err
	}
	if key := heldkey.In(signer); key != nil {
		if rule.fips { // of any name: the provider is not in FIPS mode's library context
			return nil, fmt.Errorf("private key of the OpenSSL provider %q would sign outside of FIPS mode", key.Provider())
		}
		cred, err := libssl.NewKeyCredential(cert.Certificate, key.Key, allowed, cert.OCSPStaple, scts)
		if err != nil {
			return nil, libraryError(err)
		}
		return cred, nil
	}
	if isOwnKey(signer) {
		pkcs8, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		if err != nil {
			return nil, err
		}
		cred, err := libssl.NewCredential(rule.fips, cert.Certificate, pkcs8, allowed, cert.OCSPStaple, scts)
		if err != nil {
			return nil, libraryError(err)
		}
		return cred, nil
	}
	if rule.fips {
		return nil, fmt.Errorf("private key of type %T would sign outside of the FIPS module", cert.PrivateKey)
	}
	return newSignerCredential(cert.Certificate, signer, allowed, cert.OCSPStaple, scts)
}

// newSignerCredential makes a credential whose key only Go can use.
func newSignerCredential(chain [][]byte, signer crypto.Signer, schemes []tls.SignatureScheme,
	staple, scts []byte) (*libssl.Credential, error) {
	cred, err := libssl.NewSignerCredential(chain, signer, schemes, staple, scts)
	if e := (*libssl.Error)(nil); errors.As(err, &e) {
		return nil, libraryError(err)
	}
	return cred, err
}

// onlySigns reports whether key can only be asked to sign, so that libssl must ask Go.
func onlySigns(key crypto.PrivateKey) bool { return !isOwnKey(key) && heldkey.In(key) == nil }

// isOwnKey reports whether key is of a type of the standard library, so that libssl can have it. An
// RSA key without its primes has no PKCS #8 form.
func isOwnKey(key crypto.PrivateKey) bool {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return len(key.Primes) > 0
	case *ecdsa.PrivateKey, ed25519.PrivateKey:
		return true
	}
	return libssl.IsMLDSAPrivateKey(key)
}

// checkMLDSA returns an error if a leaf has an ML-DSA key that can't be used here.
func (r *credentialRule) checkMLDSA(leaf *x509.Certificate) error {
	scheme := libssl.MLDSAInfo(leaf.RawSubjectPublicKeyInfo)
	switch {
	case scheme == 0:
		return nil
	case !negotiate.KnownSignature(scheme):
		return fmt.Errorf("a certificate with an %s key: %s", libssl.MLDSAName(scheme), negotiate.WhyNoSignature(scheme))
	case r.fips && !negotiate.FIPSSignature(scheme):
		return fmt.Errorf("a certificate with an %s key: the FIPS module has no such keys", libssl.MLDSAName(scheme))
	}
	return nil
}

// checkStaple returns an error unless an OCSP staple is an OCSPResponse (RFC 6960, section 4.2.1).
// From 3.6 on libssl silently leaves others out.
func checkStaple(der []byte) error {
	var response struct {
		Status asn1.Enumerated
		Bytes  struct {
			Type     asn1.ObjectIdentifier
			Response []byte
		} `asn1:"optional,explicit,tag:0"`
	}
	rest, err := asn1.Unmarshal(der, &response)
	switch {
	case err != nil:
		return fmt.Errorf("OCSPStaple is not a DER OCSPResponse: %w", err)
	case len(rest) > 0:
		return fmt.Errorf("OCSPStaple has %d bytes after the OCSPResponse", len(rest))
	}
	return nil
}

// sctList encodes a SignedCertificateTimestampList: RFC 6962, section 3.3.
func sctList(scts [][]byte) ([]byte, error) {
	if len(scts) == 0 {
		return nil, nil
	}
	var list bytes.Buffer
	list.Write([]byte{0, 0})
	for _, sct := range scts {
		if len(sct) == 0 || len(sct) > 0xffff {
			return nil, fmt.Errorf("SignedCertificateTimestamps: one has %d bytes", len(sct))
		}
		list.Write([]byte{byte(len(sct) >> 8), byte(len(sct))})
		list.Write(sct)
	}
	b, n := list.Bytes(), list.Len()-2
	if n > 0xffff-2 {
		return nil, fmt.Errorf("SignedCertificateTimestamps: %d bytes together", n)
	}
	b[0], b[1] = byte(n>>8), byte(n)
	return b, nil
}

// parseSCTs is sctList's inverse, for a peer's bytes. A malformed list gives ok == false.
func parseSCTs(list []byte) (scts [][]byte, ok bool) {
	if len(list) == 0 {
		return nil, true
	}
	r := wire.Reader{Rest: list}
	all := r.List(2)
	if !r.Done() || len(all.Rest) == 0 {
		return nil, false
	}
	for len(all.Rest) > 0 {
		sct := all.Vector(2)
		if len(sct) == 0 {
			return nil, false
		}
		scts = append(scts, sct)
	}
	return scts, true
}

// ownCredential returns libssl's form of cert, a certificate in the Context's configuration, and
// sets its Leaf. The Contexts for GetConfigForClient's configurations share a cache of these, since
// most of them have the same few certificates.
func (c *Context) ownCredential(cert *tls.Certificate, shared bool) (*libssl.Credential, error) {
	if !shared {
		return newCredential(cert, c.rule)
	}
	cred, err := c.creds.get(cert, c.rule)
	if err == nil && cert.Leaf == nil {
		cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0])
	}
	return cred, err
}

// credential returns libssl's form of cert.
func (c *Context) credential(cert *tls.Certificate) (*libssl.Credential, error) {
	for i := range c.static {
		if cert == &c.config.Certificates[i] {
			return c.static[i], nil
		}
	}
	return c.creds.get(cert, c.rule)
}
