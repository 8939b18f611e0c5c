//go:build go1.27

package libssl

import (
	"crypto"
	"crypto/mldsa"
	"crypto/tls"
)

// GoHasMLDSA reports whether this Go version has ML-DSA: crypto/tls, crypto/x509, crypto/mldsa.
const GoHasMLDSA = true

// MLDSAKey returns the algorithm that an ML-DSA key signs with, or 0 if public is another key.
func MLDSAKey(public crypto.PublicKey) tls.SignatureScheme {
	key, ok := public.(*mldsa.PublicKey)
	if !ok || key == nil {
		return 0
	}
	switch key.Parameters() {
	case mldsa.MLDSA44():
		return MLDSA44
	case mldsa.MLDSA65():
		return MLDSA65
	case mldsa.MLDSA87():
		return MLDSA87
	}
	return 0
}

// IsMLDSAPrivateKey reports whether a private key is crypto/mldsa's own.
func IsMLDSAPrivateKey(private crypto.PrivateKey) bool {
	_, ok := private.(*mldsa.PrivateKey)
	return ok
}

// MLDSAContext returns the context string of ML-DSA's options: FIPS 204, section 5.2.
func MLDSAContext(opts crypto.SignerOpts) string {
	if o, ok := opts.(*mldsa.Options); ok && o != nil {
		return o.Context
	}
	return ""
}
