//go:build !cgo

package libssl

import (
	"crypto"
	"crypto/tls"
)

// NewSignerCredential returns ErrUnavailable.
func NewSignerCredential([][]byte, crypto.Signer, []tls.SignatureScheme, []byte, []byte) (*Credential, error) {
	return nil, ErrUnavailable
}
