package ossl

import (
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
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

// answerCertificate finds the certificate that a client presents, as crypto/tls does.
func (h *handshake) answerCertificate() error {
	c := h.c
	ssl, err := c.engine.lock()
	if err != nil {
		return err
	}
	version := h.version
	info, offered, ok := stdtls.ParseCertificateRequest(version, append([]byte(nil), ssl.Message()...))
	c.engine.unlock()
	if !ok {
		return &LibraryError{Op: "handshake", Reason: "malformed CertificateRequest", cause: tls.AlertError(alertDecodeError)}
	}
	stdtls.SetRequestContext(info, h.ctx)

	config := c.context().config
	var cert *tls.Certificate
	if config.GetClientCertificate != nil {
		var err error
		if cert, err = config.GetClientCertificate(info); err != nil {
			h.abort(version, alertInternalError)
			return err
		}
		if cert == nil {
			h.abort(version, alertInternalError)
			return fmt.Errorf("tls: GetClientCertificate returned nil")
		}
	} else {
		for i := range config.Certificates {
			if info.SupportsCertificate(&config.Certificates[i]) != nil {
				continue
			}
			if _, err := c.context().canSign(version, offered, &config.Certificates[i]); err == nil {
				cert = &config.Certificates[i]
				break
			}
		}
	}
	var cred *libssl.Credential
	if cert != nil && len(cert.Certificate) > 0 {
		// libssl would omit a certificate that can't sign, and the server would think that the client has none.
		if alert, err := c.context().canSign(version, offered, cert); err != nil {
			return h.refuseRequest(version, err, alert)
		}
		var err error
		if cred, err = c.context().credential(cert); err != nil {
			err = &ConfigError{Field: "GetClientCertificate", Reason: "certificate can't be used", Err: err}
			return h.refuseRequest(version, err, alertInternalError)
		}
		h.local = cert.Certificate
		h.key, _ = cert.PrivateKey.(*Key)
	}
	ssl, err = c.engine.lock()
	if err != nil {
		return err
	}
	err = ssl.UseCredential(cred)
	c.engine.unlock()
	if err != nil {
		return h.refuseRequest(version, libraryError(err), alertInternalError)
	}
	return nil
}

// canSign returns crypto/tls's alert and error if a client's certificate can't sign with any algorithm that both the server
// offers and the Context uses.
func (c *Context) canSign(version uint16, offered []tls.SignatureScheme, cert *tls.Certificate) (alert uint8, err error) {
	if _, ok := cert.PrivateKey.(crypto.Signer); !ok && version < tls.VersionTLS13 {
		return alertInternalError, fmt.Errorf("tls: client certificate private key of type %T does not implement crypto.Signer",
			cert.PrivateKey)
	}
	info := &tls.CertificateRequestInfo{Version: version} // it names no authority, so only the algorithms matter
	info.SignatureSchemes = keep(offered, func(s tls.SignatureScheme) bool {
		return len(c.rule.signatures) == 0 || slices.Contains(c.rule.signatures, s)
	})
	if len(info.SignatureSchemes) == 0 && len(offered) > 0 { // to crypto/tls, an empty list has another meaning
		return alertHandshakeFailure, errNoSignature
	}
	return alertHandshakeFailure, info.SupportsCertificate(cert)
}

// refuseRequest ends the handshake of a client that has been asked for its certificate: in TLS 1.3 when the server's flight is
// complete, since the alert can't be protected before.
func (h *handshake) refuseRequest(version uint16, err error, alert uint8) error {
	c := h.c
	if version < tls.VersionTLS13 || !c.context().seals {
		h.abort(version, alert)
		return err
	}
	ssl, err := c.engine.lock()
	if err != nil {
		return err
	}
	defer c.engine.unlock()
	h.refusing = &refusal{err, alert}
	ssl.RefuseRequest(alert)
	return nil
}

// abort tells the peer, where nothing is protected yet, that the handshake ends.
func (h *handshake) abort(version uint16, alert uint8) {
	if version < tls.VersionTLS13 {
		_ = h.send(plaintextAlert(alert))
	}
}
