package localca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"slices"
	"strings"
)

// A Kind is a kind of key.
type Kind string

// The kinds of keys. Those of ML-DSA need Go 1.27, by which the program was built.
const (
	ECDSA   Kind = "ecdsa" // P-256
	RSA     Kind = "rsa"   // 3072 bits
	Ed25519 Kind = "ed25519"
	MLDSA44 Kind = "mldsa44"
	MLDSA65 Kind = "mldsa65"
	MLDSA87 Kind = "mldsa87"
)

// Kinds are the names of all kinds.
var Kinds = []string{string(ECDSA), string(RSA), string(Ed25519), string(MLDSA44), string(MLDSA65), string(MLDSA87)}

// ParseKind returns the kind with a name.
func ParseKind(name string) (Kind, error) {
	if !slices.Contains(Kinds, name) {
		return "", fmt.Errorf("%q is none of %s", name, strings.Join(Kinds, ", "))
	}
	return Kind(name), nil
}

const rsaBits = 3072

func newKey(kind Kind) (crypto.Signer, error) {
	switch kind {
	case ECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RSA:
		return rsa.GenerateKey(rand.Reader, rsaBits)
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return newMLDSAKey(kind)
}

// is reports whether a key is of the kind. Keys of ML-DSA are taken for others: Go 1.26 has no type for
// them.
func (kind Kind) is(key crypto.Signer) bool {
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		return kind == ECDSA && key.Curve == elliptic.P256()
	case *rsa.PrivateKey:
		return kind == RSA && key.N.BitLen() == rsaBits
	case ed25519.PrivateKey:
		return kind == Ed25519
	}
	return false
}
