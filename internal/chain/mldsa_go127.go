//go:build go1.27

package chain

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/ossl-go/ossl/internal/libssl"
)

// mldsaSignature returns the ML-DSA algorithm that a certificate is signed with, or 0 if it is
// signed with another.
func mldsaSignature(algorithm x509.SignatureAlgorithm) tls.SignatureScheme {
	switch algorithm {
	case x509.MLDSA44:
		return libssl.MLDSA44
	case x509.MLDSA65:
		return libssl.MLDSA65
	case x509.MLDSA87:
		return libssl.MLDSA87
	}
	return 0
}
