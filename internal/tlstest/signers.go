package tlstest

import (
	"crypto"
	"crypto/tls"
	"io"
	"sync/atomic"
)

// A LookingSigner is a key that calls Before before each signature.
type LookingSigner struct {
	crypto.Signer
	Before func()
}

// Sign implements crypto.Signer.
func (s *LookingSigner) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	s.Before()
	return s.Signer.Sign(rand, digest, opts)
}

// An OpaqueKey is a key that shows only crypto.Signer, such as one in an HSM. It counts its
// signatures. Instead, if set, makes them.
type OpaqueKey struct {
	Key     crypto.Signer
	Signed  atomic.Int32
	Instead func(digest []byte, opts crypto.SignerOpts) ([]byte, error)
}

// Public implements crypto.Signer.
func (k *OpaqueKey) Public() crypto.PublicKey { return k.Key.Public() }

// Sign implements crypto.Signer.
func (k *OpaqueKey) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.Signed.Add(1)
	if k.Instead != nil {
		return k.Instead(digest, opts)
	}
	return k.Key.Sign(rand, digest, opts)
}

// Opaque returns a certificate for a name, whose key is opaque.
func Opaque(kind KeyKind, name string) (tls.Certificate, *OpaqueKey) {
	cert := New(Options{Kind: kind, Names: []string{name}})
	key := &OpaqueKey{Key: cert.PrivateKey.(crypto.Signer)}
	cert.PrivateKey = key
	return cert, key
}
