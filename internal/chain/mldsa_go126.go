//go:build !go1.27

package chain

import (
	"crypto/tls"
	"crypto/x509"
)

// mldsaSignature returns 0: crypto/x509 has no ML-DSA.
func mldsaSignature(x509.SignatureAlgorithm) tls.SignatureScheme { return 0 }
