// Package keys loads private keys that stay with OpenSSL: in its memory or, if a provider has them,
// in a token or a hardware security module (HSM). A key is named by a URI, such as
// "pkcs11:object=tls", or by the path of a file.
//
// [LoadX509KeyPair] loads a key with its certificate, for the Certificates of a [tls.Config] of
// package ossl. [Load] loads a key alone.
package keys

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

	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/heldkey"
	"github.com/ossl-go/ossl/internal/libssl"
)

// A Key is a private key that OpenSSL holds. [Load] makes one.
//
// If it is the PrivateKey of a [tls.Certificate] that is given to package ossl, libssl signs with
// it directly, without calling back into Go. A Key is also a [crypto.Signer] for all other uses:
// crypto/tls, certificate requests, JWTs. It may be used by any number of goroutines and Contexts
// at the same time.
//
// If OpenSSL itself does not include the key's provider, a signature holds a thread until the token
// answers. Therefore the number of such signatures at one time is bounded: see [WithMaxSigners].
type Key struct {
	held   heldkey.Key
	public crypto.PublicKey
	uri    string // without secrets
}

func init() {
	heldkey.Register(func(private crypto.PrivateKey) *heldkey.Key {
		if k, ok := private.(*Key); ok && k != nil {
			return &k.held
		}
		return nil
	})
}

// Public returns the public key: a [*rsa.PublicKey], [*ecdsa.PublicKey] or [ed25519.PublicKey], and
// from Go 1.27 on also a *[mldsa.PublicKey].
//
// [mldsa.PublicKey]: https://pkg.go.dev/crypto/mldsa#PublicKey
func (k *Key) Public() crypto.PublicKey { return k.public }

// Provider returns the name of the OpenSSL provider that has the key, such as "default" or
// "pkcs11". It is empty with OpenSSL 1.1.1, which has no providers.
func (k *Key) Provider() string { return k.held.Provider() }

// String returns the URI of the key, without secrets.
func (k *Key) String() string { return "key " + k.uri }

// GoString is like String, so that no format prints the fields.
func (k *Key) GoString() string { return k.String() }

// Sign signs digest, or a message if the key is for Ed25519 or ML-DSA, as described by
// [crypto.Signer]. opts are as for crypto/rsa, crypto/ecdsa, crypto/ed25519 and crypto/mldsa:
// [*rsa.PSSOptions] selects RSA-PSS, and RSA without a hash function signs digest unchanged. The
// hash functions are SHA-1, SHA-224, SHA-256, SHA-384 and SHA-512. rand is not used: random numbers
// come from OpenSSL, or from the token.
//
// Sign waits for its turn without a limit; [Key.SignContext] can stop waiting.
func (k *Key) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) (signature []byte, err error) {
	return k.SignContext(context.Background(), rand, digest, opts)
}

// SignContext is like [Key.Sign], but if ctx is done while SignContext waits for its turn, it
// returns the error of ctx. It can't interrupt a signature that the token has begun.
func (k *Key) SignContext(ctx context.Context, rand io.Reader, digest []byte, opts crypto.SignerOpts) (
	signature []byte, err error) {
	algorithm, hash, salt, tbs, err := k.signing(digest, opts)
	if err != nil {
		return nil, fmt.Errorf("keys: %v: %w", k, err)
	}
	if k.held.Share != nil {
		err := gate.Tokens.Enter(k.held.Share, func(ready <-chan struct{}) error {
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
		defer gate.Tokens.Leave(k.held.Share)
	}
	sig, err := k.held.Sign(algorithm, hash, salt, tbs)
	if err != nil {
		return nil, libraryError(err)
	}
	return sig, nil
}

// signing returns OpenSSL's names for the way to sign digest, and the bytes to sign.
func (k *Key) signing(digest []byte, opts crypto.SignerOpts) (algorithm int, hash, salt string, tbs []byte, err error) {
	if opts == nil {
		return 0, "", "", nil, errors.New("opts is nil")
	}
	h := opts.HashFunc()
	if public, ok := k.public.(ed25519.PublicKey); ok {
		o, _ := opts.(*ed25519.Options)
		if h != 0 || len(public) == 0 || o != nil && o.Context != "" {
			return 0, "", "", nil, errors.New("Ed25519ph and Ed25519ctx are not supported")
		}
		return libssl.SignEd25519, "", "", digest, nil
	}
	if libssl.MLDSAKey(k.public) != 0 {
		if h != 0 || libssl.MLDSAContext(opts) != "" {
			return 0, "", "", nil, errors.New("ML-DSA with a prehashed message or a context is not supported")
		}
		return libssl.SignMLDSA, "", "", digest, nil
	}
	if h != 0 {
		if hash = libssl.HashName(h); hash == "" {
			return 0, "", "", nil, fmt.Errorf("hash function %v is not supported", h)
		}
		if len(digest) != h.Size() {
			return 0, "", "", nil, fmt.Errorf("digest length %d does not match %v", len(digest), h)
		}
	}
	if public, ok := k.public.(*ecdsa.PublicKey); ok {
		// Only the leftmost bits count (FIPS 186-5, section 6.4.1), and some tokens don't drop the
		// others.
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
		return 0, "", "", nil, fmt.Errorf("invalid salt length %d", pss.SaltLength)
	}
	return libssl.SignRSAPSS, hash, salt, digest, nil
}
