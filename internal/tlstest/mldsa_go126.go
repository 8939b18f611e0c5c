//go:build !go1.27

package tlstest

import "crypto"

// MLDSAKinds are the kinds of ML-DSA keys, which Go has from 1.27 on.
var MLDSAKinds []KeyKind

func newMLDSAKey(KeyKind) crypto.Signer { return nil }
