package ossl

import (
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/ossl-go/ossl/internal/libssl"
)

// newSignerCredential makes a credential whose key only Go can use.
func newSignerCredential(chain [][]byte, signer crypto.Signer, sigalgs string, staple, scts []byte) (*libssl.Credential, error) {
	cred, err := libssl.NewSignerCredential(chain, signer, sigalgs, staple, scts)
	if e := (*libssl.Error)(nil); errors.As(err, &e) {
		return nil, libraryError(err)
	}
	return cred, err
}

// SignFailed is called from inside libssl, which then fails with internal_error. The text and the alert that become of it are
// crypto/tls's.
func (r *verifierRef) SignFailed(err error, panicked any) {
	if r.conn == nil {
		return
	}
	h := r.conn.hs
	h.panicked = panicked
	switch {
	case h.version() >= tls.VersionTLS13:
		h.refused = &refusal{fmt.Errorf("tls: failed to sign handshake: %w", err), alertInternalError}
	case r.conn.isClient:
		h.refused = &refusal{err, alertInternalError}
	default:
		h.refused = &refusal{fmt.Errorf("tls: failed to sign ECDHE parameters: %w", err), alertHandshakeFailure}
	}
}
