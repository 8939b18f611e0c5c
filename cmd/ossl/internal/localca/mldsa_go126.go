//go:build !go1.27

package localca

import (
	"crypto"
	"fmt"
	"runtime"
)

func newMLDSAKey(kind Kind) (crypto.Signer, error) {
	return nil, fmt.Errorf("keys of the kind %s need an ossl that was built with Go 1.27 or later, and this one was built with %s",
		kind, runtime.Version())
}
