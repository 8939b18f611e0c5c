package ossl

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/ossl-go/ossl/internal/libssl"
)

// A Key is a private key that OpenSSL holds: in its memory, or, by a provider, in a token or a hardware security module (HSM).
// [LoadKey] makes one.
//
// It goes into [tls.Certificate.PrivateKey], wherever ossl takes such a certificate: libssl then signs with it itself, and no
// call comes back into Go. As a [crypto.Signer] it serves everything else that takes one: crypto/tls, certificate requests, JWTs.
// It may be used by any number of goroutines and Contexts at the same time.
//
// If the key's provider is not one of OpenSSL's own, a signature holds a thread until the token answers. So the number of such
// signatures at one time is bounded: see [WithMaxSigners].
type Key struct {
	key    *libssl.Key
	public crypto.PublicKey
	uri    string // as it may be shown
	turns  *share // of the gate blocked; nil if one of OpenSSL's own providers signs and WithMaxSigners sets no bound
}

// Public returns the key's public half: a [*rsa.PublicKey], [*ecdsa.PublicKey] or [ed25519.PublicKey].
func (k *Key) Public() crypto.PublicKey { return k.public }

// Provider returns the name of the OpenSSL provider that has the key, such as "default" or "pkcs11". It is empty with OpenSSL
// 1.1.1, which has no providers.
func (k *Key) Provider() string { return k.key.Provider() }

// String says where the key is from, without a PIN.
func (k *Key) String() string { return "key " + k.uri }

// GoString is String, so that no format prints what is inside.
func (k *Key) GoString() string { return k.String() }

// Sign signs digest, or, with Ed25519, a message, as [crypto.Signer] describes it. opts are as for crypto/rsa, crypto/ecdsa and
// crypto/ed25519: [*rsa.PSSOptions] asks for RSA-PSS, and RSA without a hash function signs digest as it is. Of the hash
// functions it takes SHA-1, SHA-224, SHA-256, SHA-384 and SHA-512. rand is not used: random numbers come from OpenSSL, or from
// the token.
//
// It waits for its turn for as long as that takes; [Key.SignContext] can stop waiting.
func (k *Key) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) (signature []byte, err error) {
	return k.SignContext(context.Background(), rand, digest, opts)
}

// SignContext is like [Key.Sign], but if ctx ends while it waits for its turn, it returns ctx's error. It can't interrupt a
// signature that the token has begun.
func (k *Key) SignContext(ctx context.Context, rand io.Reader, digest []byte, opts crypto.SignerOpts) (
	signature []byte, err error) {
	algorithm, hash, salt, tbs, err := k.signing(digest, opts)
	if err != nil {
		return nil, fmt.Errorf("ossl: %v: %w", k, err)
	}
	if k.turns != nil {
		err := blocked.enter(k.turns, func(ready <-chan struct{}) error {
			select {
			case <-ready:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err != nil {
			return nil, err
		}
		defer blocked.leave(k.turns)
	}
	sig, err := k.key.Sign(algorithm, hash, salt, tbs)
	if err != nil {
		return nil, libraryError(err)
	}
	return sig, nil
}

// signing says in OpenSSL's words how to sign digest.
func (k *Key) signing(digest []byte, opts crypto.SignerOpts) (algorithm int, hash, salt string, tbs []byte, err error) {
	if opts == nil {
		return 0, "", "", nil, errors.New("signing needs opts")
	}
	h := opts.HashFunc()
	if public, ok := k.public.(ed25519.PublicKey); ok {
		o, _ := opts.(*ed25519.Options)
		if h != 0 || len(public) == 0 || o != nil && o.Context != "" {
			return 0, "", "", nil, errors.New("Ed25519ph and Ed25519ctx are not supported")
		}
		return libssl.SignEd25519, "", "", digest, nil
	}
	if h != 0 {
		if hash = libssl.HashName(h); hash == "" {
			return 0, "", "", nil, fmt.Errorf("hash function %v is not supported", h)
		}
		if len(digest) != h.Size() {
			return 0, "", "", nil, fmt.Errorf("a digest of %d bytes is none of %v", len(digest), h)
		}
	}
	if public, ok := k.public.(*ecdsa.PublicKey); ok {
		// Only the leftmost bits count, FIPS 186-5, section 6.4.1, and not every token drops the others itself.
		if n := (public.Params().N.BitLen() + 7) / 8; len(digest) > n {
			digest = digest[:n]
		}
		return libssl.SignECDSA, "", "", digest, nil
	}
	pss, ok := opts.(*rsa.PSSOptions)
	if !ok {
		return libssl.SignRSAPKCS1, hash, "", digest, nil
	}
	switch {
	case h == 0:
		return 0, "", "", nil, errors.New("RSA-PSS needs a hash function")
	case pss.SaltLength == rsa.PSSSaltLengthAuto:
		salt = "max"
	case pss.SaltLength == rsa.PSSSaltLengthEqualsHash:
		salt = strconv.Itoa(h.Size())
	case pss.SaltLength > 0:
		salt = strconv.Itoa(pss.SaltLength)
	default:
		return 0, "", "", nil, fmt.Errorf("salt length %d", pss.SaltLength)
	}
	return libssl.SignRSAPSS, hash, salt, digest, nil
}
