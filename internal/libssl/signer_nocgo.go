//go:build !cgo

package libssl

import "crypto"

// NewSignerCredential returns ErrUnavailable.
func NewSignerCredential([][]byte, crypto.Signer, string, []byte, []byte) (*Credential, error) {
	return nil, ErrUnavailable
}
