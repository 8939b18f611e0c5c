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

// A SignRequest is a handshake's request for a signature. It may be used after its connection was
// freed.
type SignRequest struct {
	signer    crypto.Signer // nil if it no longer exists
	algorithm int
	hash      crypto.Hash
	digested  bool
	tbs       []byte // the signer may keep it
	max       int    // the longest signature allowed, in bytes
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

// Sign returns the signer's signature.
func (r *SignRequest) Sign() ([]byte, error) {
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
	var sig []byte
	var err error
	if r.digested {
		sig, err = r.signer.Sign(rand.Reader, r.tbs, opts)
	} else {
		sig, err = crypto.SignMessage(r.signer, rand.Reader, r.tbs, opts)
	}
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
