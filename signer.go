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

// answerSign signs with a certificate's crypto.Signer, on this goroutine, unless the handshake has ended.
func (h *handshake) answerSign() error {
	c := h.c
	if err := h.ended(); err != nil {
		return err
	}
	ssl, err := c.engine.lock()
	if err != nil {
		return err
	}
	request := ssl.SignRequest()
	c.engine.unlock()
	signature, err := request.Sign()
	if err != nil {
		h.refused = h.signFailed(err)
	}
	ssl, err = c.engine.lock()
	if err != nil {
		return err
	}
	defer c.engine.unlock()
	ssl.SetSignature(signature)
	return nil
}

// signFailed returns crypto/tls's error and alert for a failure to sign. libssl, which fails without a signature, knows neither.
func (h *handshake) signFailed(err error) *refusal {
	switch {
	case h.version >= tls.VersionTLS13:
		return &refusal{fmt.Errorf("tls: failed to sign handshake: %w", err), alertInternalError}
	case h.c.isClient:
		return &refusal{err, alertInternalError}
	default:
		return &refusal{fmt.Errorf("tls: failed to sign ECDHE parameters: %w", err), alertHandshakeFailure}
	}
}
