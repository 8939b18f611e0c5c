// Package chain verifies the certificate chains of peers, as crypto/tls does and with its errors
// and alerts, and remembers those that it has verified.
//
// A chain is verified by crypto/x509 or, in FIPS mode, by OpenSSL's FIPS module (see [Module]). The
// callbacks of a configuration, VerifyPeerCertificate and VerifyConnection, belong to the handshake
// and are not called here.
package chain

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
)

// maxRSABits is crypto/tls's limit on the size of an RSA key in a peer's certificate.
const maxRSABits = 8192

// A Config holds the parts of a configuration that decide on chains.
type Config struct {
	// These are as in tls.Config.
	RootCAs, ClientCAs *x509.CertPool
	InsecureSkipVerify bool
	ClientAuth         tls.ClientAuthType

	// Level is the OpenSSL security level that verified chains must have, 0 for none. In FIPS mode
	// the module has a level too.
	Level int

	// CacheSize is the number of verified chains to remember, 0 for none.
	CacheSize int

	// Module verifies in FIPS mode. It is nil otherwise.
	Module *Module

	// Counts are incremented with each verification that looks for a chain to a root.
	Counts *Counts // may be nil
}

// Counts count verifications: whether the chain was remembered, or had to be verified.
type Counts struct{ Hits, Misses atomic.Uint64 }

// A Verifier verifies chains for one configuration, which doesn't change. It may be used by several
// goroutines at the same time.
type Verifier struct {
	config Config
	cache  *cache
	certs  *certCache
}

// New returns a Verifier.
func New(config Config) *Verifier {
	return &Verifier{
		config: config,
		cache:  newCache(config.CacheSize, config.RootCAs, config.ClientCAs),
		certs:  new(certCache),
	}
}

// A Refusal is a failed verification: the error for the caller and the alert for the peer.
type Refusal struct {
	Err   error
	Alert uint8
}

// A peer is the owner of a chain.
type peer struct {
	server bool
	name   string // the name that a client asks a server for
}

func (p peer) String() string {
	if p.server {
		return "server"
	}
	return "client"
}

// VerifyServer verifies the chain of a server that was asked for by a name. packed has each
// certificate, leaf first, behind its length in four bytes, and is not empty.
func (v *Verifier) VerifyServer(packed []byte, name string, now time.Time) (
	certs []*x509.Certificate, chains [][]*x509.Certificate, refused *Refusal) {
	return v.verify(packed, peer{server: true, name: name}, !v.config.InsecureSkipVerify, now)
}

// VerifyClient verifies the chain of a client, packed as for [Verifier.VerifyServer].
func (v *Verifier) VerifyClient(packed []byte, now time.Time) (
	certs []*x509.Certificate, chains [][]*x509.Certificate, refused *Refusal) {
	return v.verify(packed, peer{}, v.config.ClientAuth >= tls.VerifyClientCertIfGiven, now)
}

// verify parses a chain, and looks for chains to a root if wanted is true.
func (v *Verifier) verify(packed []byte, p peer, wanted bool, now time.Time) (
	certs []*x509.Certificate, chains [][]*x509.Certificate, refused *Refusal) {
	if now.IsZero() {
		now = time.Now() // to crypto/x509, the zero time means now
	}
	var key cacheKey
	var trusted *trust
	if wanted {
		key = cacheKey{sha256.Sum256(packed), p}
		certs, chains, trusted = v.cache.get(key, now)
		v.count(certs != nil)
		if certs != nil {
			return certs, chains, nil
		}
	}
	if certs, refused = v.parse(packed, p); refused != nil {
		return nil, nil, refused
	}
	if wanted {
		if chains, refused = v.find(certs, packed, p, now); refused != nil {
			return nil, nil, refused
		}
	}
	if refused = v.checkKey(certs, p); refused != nil { // even if the chain is not verified
		return nil, nil, refused
	}
	if wanted {
		v.cache.put(key, certs, chains, now, trusted)
	}
	return certs, chains, nil
}

func (v *Verifier) count(hit bool) {
	switch c := v.config.Counts; {
	case c == nil:
	case hit:
		c.Hits.Add(1)
	default:
		c.Misses.Add(1)
	}
}

// parse returns the certificates of a chain.
func (v *Verifier) parse(packed []byte, p peer) ([]*x509.Certificate, *Refusal) {
	ders, ok := split(packed)
	if !ok || len(ders) == 0 {
		return nil, &Refusal{errors.New("ossl: malformed chain from libssl"), record.AlertInternalError}
	}
	certs := make([]*x509.Certificate, len(ders))
	for i, der := range ders {
		cert, err := v.parseCertificate(der, p)
		if err != nil {
			return nil, &Refusal{fmt.Errorf("tls: failed to parse certificate from %v: %w", p, err), record.AlertDecodeError}
		}
		if key, ok := cert.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
			return nil, &Refusal{fmt.Errorf("tls: %v sent certificate containing RSA key larger than %d bits", p, maxRSABits),
				record.AlertBadCertificate}
		}
		certs[i] = cert
	}
	return certs, nil
}

// parseCertificate parses a certificate and keeps no reference to der.
func (v *Verifier) parseCertificate(der []byte, p peer) (*x509.Certificate, error) {
	if p.server {
		return v.certs.parse(der)
	}
	return x509.ParseCertificate(bytes.Clone(der))
}

// find returns the chains from certs[0] to a root, at least one.
func (v *Verifier) find(certs []*x509.Certificate, packed []byte, p peer, now time.Time) ([][]*x509.Certificate, *Refusal) {
	var chains [][]*x509.Certificate
	var err error
	if v.config.Module != nil {
		chains, err = v.config.Module.verify(certs, packed, p, now)
	} else {
		opts := x509.VerifyOptions{CurrentTime: now, Intermediates: x509.NewCertPool()}
		if p.server {
			opts.Roots, opts.DNSName = v.config.RootCAs, p.name
		} else {
			opts.Roots, opts.KeyUsages = v.config.ClientCAs, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}
		for _, cert := range certs[1:] {
			opts.Intermediates.AddCert(cert)
		}
		chains, err = certs[0].Verify(opts)
	}
	if library := (*libssl.Error)(nil); errors.As(err, &library) { // which is not about the certificates
		return nil, &Refusal{err, record.AlertInternalError}
	}
	if err != nil {
		return nil, unverified(certs, err, alertFor(err, p))
	}
	if chains, err = goAllows(chains); err != nil {
		return nil, unverified(certs, err, record.AlertBadCertificate)
	}
	if chains, err = strongChains(chains, v.config.Level); err != nil {
		return nil, unverified(certs, err, record.AlertBadCertificate)
	}
	return chains, nil
}

// checkKey refuses a leaf whose key TLS can't use, or FIPS mode doesn't allow.
func (v *Verifier) checkKey(certs []*x509.Certificate, p peer) *Refusal {
	if v.config.Module != nil && !KeyAllowed(certs[0].PublicKey) {
		err := x509.CertificateInvalidError{Cert: certs[0], Reason: x509.NoValidChains, Detail: keyNotAllowed}
		return unverified(certs, err, alertFor(err, p))
	}
	switch certs[0].PublicKey.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
		return nil
	}
	if libssl.MLDSAKey(certs[0].PublicKey) != 0 {
		return nil
	}
	return &Refusal{fmt.Errorf("tls: %v's certificate contains an unsupported type of public key: %T", p, certs[0].PublicKey),
		record.AlertUnsupportedCertificate}
}

func unverified(certs []*x509.Certificate, err error, alert uint8) *Refusal {
	return &Refusal{&tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: err}, alert}
}

// alertFor returns the alert for a failed verification: a client always sends bad_certificate.
func alertFor(err error, p peer) uint8 {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case p.server:
		return record.AlertBadCertificate
	case errors.As(err, &unknown):
		return record.AlertUnknownCA
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return record.AlertCertificateExpired
	}
	return record.AlertBadCertificate
}

// split returns the certificates of a packed chain, without copying.
func split(packed []byte) (ders [][]byte, ok bool) {
	for len(packed) > 0 {
		if len(packed) < 4 {
			return nil, false
		}
		n := int(packed[0])<<24 | int(packed[1])<<16 | int(packed[2])<<8 | int(packed[3])
		if n <= 0 || n > len(packed)-4 {
			return nil, false
		}
		ders = append(ders, packed[4:4+n])
		packed = packed[4+n:]
	}
	return ders, true
}
