//go:build go1.27

package tlstest

import (
	"crypto"
	"crypto/mldsa"
)

// MLDSAKinds are the kinds of ML-DSA keys, which Go has from 1.27 on.
var MLDSAKinds = []KeyKind{MLDSA44, MLDSA65, MLDSA87}

func newMLDSAKey(kind KeyKind) crypto.Signer {
	switch kind {
	case MLDSA44:
		return must(mldsa.GenerateKey(mldsa.MLDSA44()))
	case MLDSA65:
		return must(mldsa.GenerateKey(mldsa.MLDSA65()))
	case MLDSA87:
		return must(mldsa.GenerateKey(mldsa.MLDSA87()))
	}
	return nil
}
