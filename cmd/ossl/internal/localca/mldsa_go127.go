//go:build go1.27

package localca

import (
	"crypto"
	"crypto/mldsa"
	"fmt"
)

func newMLDSAKey(kind Kind) (crypto.Signer, error) {
	switch kind {
	case MLDSA44:
		return mldsa.GenerateKey(mldsa.MLDSA44())
	case MLDSA65:
		return mldsa.GenerateKey(mldsa.MLDSA65())
	case MLDSA87:
		return mldsa.GenerateKey(mldsa.MLDSA87())
	}
	return nil, fmt.Errorf("unknown kind of key %q", kind)
}
