package libssl

import (
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
)

// A SignObserver is a [Verifier] that wants to know why signing with a [crypto.Signer] failed: libssl only knows that it did.
type SignObserver interface {
	// SignFailed is called on the thread that is inside libssl. panicked is the signer's panic, which was stopped there, or nil.
	SignFailed(err error, panicked any)
}

// How to sign, as signer.h numbers it.
const (
	signRSAPKCS1 = 1 + iota
	signRSAPSS
	signECDSA
	signEd25519
)

// checkSigner reports whether this kind of key can be used with the library of that version.
func checkSigner(signer crypto.Signer, version uint64) error {
	switch key := signer.Public().(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey:
		return nil
	case ed25519.PublicKey:
		if version < Version3_0 {
			return errors.New("an Ed25519 key that is only a crypto.Signer needs OpenSSL 3.0 or later")
		}
		return nil
	default:
		return fmt.Errorf("a crypto.Signer with a public key of type %T is not supported", key)
	}
}

// sign makes a signature of a message, or of its digest, with at most max bytes. A panic of the signer comes back as panicked.
func sign(signer crypto.Signer, algorithm int, hash crypto.Hash, digested bool, tbs []byte, max int) (sig []byte, panicked any,
	err error) {
	defer func() {
		if p := recover(); p != nil {
			sig, panicked, err = nil, p, fmt.Errorf("panic in crypto.Signer: %v", p)
		}
	}()
	var opts crypto.SignerOpts = hash
	switch algorithm {
	case signRSAPKCS1, signECDSA:
	case signRSAPSS:
		opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
	case signEd25519:
		opts = crypto.Hash(0)
	default:
		return nil, nil, fmt.Errorf("unknown signature algorithm %d", algorithm)
	}
	if digested {
		sig, err = signer.Sign(rand.Reader, tbs, opts)
	} else {
		sig, err = crypto.SignMessage(signer, rand.Reader, tbs, opts)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case len(sig) == 0:
		return nil, nil, errors.New("crypto.Signer returned an empty signature")
	case len(sig) > max:
		return nil, nil, fmt.Errorf("crypto.Signer returned a signature of %d bytes, its key makes at most %d", len(sig), max)
	}
	return sig, nil, nil
}
