//go:build !go1.27

package libssl

import (
	"crypto"
	"crypto/tls"
)

// GoHasMLDSA reports whether this Go version has ML-DSA: crypto/tls, crypto/x509, crypto/mldsa.
const GoHasMLDSA = false

// MLDSAKey returns 0: crypto/x509 has no ML-DSA keys.
func MLDSAKey(crypto.PublicKey) tls.SignatureScheme { return 0 }

// IsMLDSAPrivateKey returns false: there is no crypto/mldsa.
func IsMLDSAPrivateKey(crypto.PrivateKey) bool { return false }

// MLDSAContext returns "": there is no crypto/mldsa.
func MLDSAContext(crypto.SignerOpts) string { return "" }
