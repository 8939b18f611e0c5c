package libssl

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1" // the hash functions that TLS 1.2 and 1.3 sign with
	_ "crypto/sha256"
	_ "crypto/sha512"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// A SignRequest is a handshake's request for a signature. It may be used after its connection was
// freed.
type SignRequest struct {
	signer    crypto.Signer // nil if it no longer exists
	inContext contextSigner // the signer, or nil if it isn't an ossl.ContextSigner
	algorithm int
	hash      crypto.Hash
	digested  bool
	tbs       []byte // the signer may keep it
	max       int    // the longest signature allowed, in bytes
}

// A contextSigner is an ossl.ContextSigner.
type contextSigner interface {
	crypto.Signer
	SignContext(ctx context.Context, rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error)
}

// asContextSigner returns signer as an ossl.ContextSigner, or nil if it is none. It also returns nil if an embedded
// field is one: then SignContext may be the field's alone, and the type's own Sign must not be passed over.
func asContextSigner(signer crypto.Signer) contextSigner {
	s, ok := signer.(contextSigner)
	if !ok {
		return nil
	}
	t := reflect.TypeOf(signer)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return s
	}
	for i := range t.NumField() {
		field, can := t.Field(i), reflect.TypeFor[contextSigner]()
		if field.Anonymous && (field.Type.Implements(can) || reflect.PointerTo(field.Type).Implements(can)) {
			return nil
		}
	}
	return s
}

// The algorithms, by signer.h's numbers.
const (
	signRSAPKCS1 = 1 + iota
	signRSAPSS
	signECDSA
	signEd25519
	signMLDSA
)

// checkSigner returns an error if this kind of key can't be used with the library of that version.
func checkSigner(signer crypto.Signer, version uint64) error {
	switch signer.Public().(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey:
		return nil
	case ed25519.PublicKey:
		if version < Version3_0 {
			return errors.New("an Ed25519 key that is only a crypto.Signer needs OpenSSL 3.0 or later")
		}
		return nil
	}
	if MLDSAKey(signer.Public()) != 0 { // whether the library has it, the caller has asked: HasSignature
		return nil
	}
	return fmt.Errorf("a crypto.Signer with a public key of type %T is not supported", signer.Public())
}

// TakesContext reports whether the signer is an ossl.ContextSigner.
func (r *SignRequest) TakesContext() bool { return r.inContext != nil }

// Sign returns the signer's signature. Only an ossl.ContextSigner gets ctx.
func (r *SignRequest) Sign(ctx context.Context) ([]byte, error) {
	if r.signer == nil {
		return nil, errors.New("the crypto.Signer no longer exists")
	}
	var opts crypto.SignerOpts = r.hash
	switch r.algorithm {
	case signRSAPKCS1, signECDSA:
	case signRSAPSS:
		opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: r.hash}
	case signEd25519, signMLDSA:
		opts = crypto.Hash(0)
	default:
		return nil, fmt.Errorf("unknown signature algorithm %d", r.algorithm)
	}
	sig, err := r.signature(ctx, opts)
	switch {
	case err != nil:
		return nil, err
	case len(sig) == 0:
		return nil, errors.New("crypto.Signer returned an empty signature")
	case len(sig) > r.max:
		return nil, fmt.Errorf("crypto.Signer returned a signature of %d bytes, but its key makes at most %d", len(sig), r.max)
	}
	return sig, nil
}

func (r *SignRequest) signature(ctx context.Context, opts crypto.SignerOpts) ([]byte, error) {
	switch digest := r.tbs; {
	case r.inContext == nil && r.digested:
		return r.signer.Sign(rand.Reader, digest, opts)
	case r.inContext == nil:
		return crypto.SignMessage(r.signer, rand.Reader, r.tbs, opts)
	default:
		if hash := opts.HashFunc(); !r.digested && hash != 0 {
			h := hash.New()
			h.Write(r.tbs)
			digest = h.Sum(nil)
		}
		return r.inContext.SignContext(ctx, rand.Reader, digest, opts)
	}
}
