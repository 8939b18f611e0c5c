package ossl

import (
	"crypto"
	"errors"

	"github.com/ossl-go/ossl/internal/libssl"
)

// newSignerCredential makes a credential whose key only Go can use.
func newSignerCredential(chain [][]byte, signer crypto.Signer, sigalgs string, staple, scts []byte) (*libssl.Credential, error) {
	return nil, errors.New("a crypto.Signer that is no key is not supported yet")
}
