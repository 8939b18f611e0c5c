package ossl

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ossl-go/ossl/internal/heldkey"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// processCertificateRequest decides which certificate a client sends.
func (h *handshake) processCertificateRequest() error {
	var request []byte
	if err := h.withSSL(func(ssl *libssl.Conn) { request = bytes.Clone(ssl.Message()) }); err != nil {
		return err
	}
	info, offered, ok := stdtls.ParseCertificateRequest(h.version, request)
	if !ok {
		return &LibraryError{Op: "handshake", Reason: "malformed CertificateRequest", cause: tls.AlertError(alertDecodeError)}
	}
	stdtls.SetRequestContext(info, h.callbackContext())
	cert, err := h.getClientCertificate(h.version, info, offered)
	if err != nil {
		h.sendClearAlert(alertInternalError)
		return err
	}
	h.noteIdentity(cert, request)
	if len(cert.Certificate) == 0 {
		return h.useClientCredential(nil, nil)
	}
	ctx := h.c.context()
	// libssl would omit a certificate that can't sign, and the server would take the client for one
	// without a certificate.
	if alert, err := ctx.canSign(h.version, offered, cert); err != nil {
		return h.refuseRequest(err, alert)
	}
	cred, err := ctx.credential(cert)
	if err != nil {
		err = &ConfigError{Field: "GetClientCertificate", Reason: "certificate can't be used", Err: err}
		return h.refuseRequest(err, alertInternalError)
	}
	h.local = cert.Certificate
	h.key = heldkey.In(cert.PrivateKey)
	return h.useClientCredential(cred, cert)
}

// getClientCertificate finds the certificate as crypto/tls's method of that name does. If there is
// none, it returns an empty one.
func (h *handshake) getClientCertificate(version uint16, info *tls.CertificateRequestInfo, offered []tls.SignatureScheme,
) (*tls.Certificate, error) {
	ctx := h.c.context()
	if ctx.config.GetClientCertificate != nil {
		cert, err := ctx.config.GetClientCertificate(info)
		if cert == nil && err == nil {
			err = errors.New("tls: GetClientCertificate returned nil")
		}
		return cert, err
	}
	for i := range ctx.config.Certificates {
		cert := &ctx.config.Certificates[i]
		if info.SupportsCertificate(cert) != nil {
			continue
		}
		if _, err := ctx.canSign(version, offered, cert); err == nil {
			return cert, nil
		}
	}
	return new(tls.Certificate), nil
}

// canSign returns crypto/tls's alert and error if a client's certificate can't sign with any
// algorithm that the server offers and the Context uses.
func (c *Context) canSign(version uint16, offered []tls.SignatureScheme, cert *tls.Certificate) (alert uint8, err error) {
	if _, ok := cert.PrivateKey.(crypto.Signer); !ok && version < tls.VersionTLS13 {
		return alertInternalError, fmt.Errorf("tls: client certificate private key of type %T does not implement crypto.Signer",
			cert.PrivateKey)
	}
	info := &tls.CertificateRequestInfo{Version: version} // it names no authority, so only the algorithms matter
	info.SignatureSchemes = offered
	if len(c.rule.signatures) > 0 {
		used := func(s tls.SignatureScheme) bool { return slices.Contains(c.rule.signatures, s) }
		info.SignatureSchemes = negotiate.Keep(offered, used)
	}
	if len(info.SignatureSchemes) == 0 && len(offered) > 0 { // to crypto/tls, an empty list has another meaning
		return alertHandshakeFailure, errNoSignature
	}
	return alertHandshakeFailure, info.SupportsCertificate(cert)
}

// useClientCredential gives libssl the client's certificate, or nil for none.
func (h *handshake) useClientCredential(cred *libssl.Credential, cert *tls.Certificate) error {
	if err := h.useCredential(cred, "GetClientCertificate", cert); err != nil {
		return h.refuseRequest(err, alertInternalError)
	}
	return nil
}

// refuseRequest aborts the handshake of a client that was asked for a certificate. In TLS 1.3 this
// happens when the server's flight is complete, since the alert can't be protected before.
func (h *handshake) refuseRequest(err error, alert uint8) error {
	if h.version < tls.VersionTLS13 || !h.c.context().sealsAlerts {
		h.sendClearAlert(alert)
		return err
	}
	h.refusing = &refusal{err, alert}
	return h.withSSL(func(ssl *libssl.Conn) { ssl.RefuseRequest(alert) })
}

// sendClearAlert sends the server an alert, unless it would have to be protected.
func (h *handshake) sendClearAlert(description uint8) {
	if h.version < tls.VersionTLS13 {
		h.sendAlert(description)
	}
}

// sign signs with the crypto.Signer of a certificate, unless the handshake has failed.
func (h *handshake) sign() error {
	if err := h.ended(); err != nil {
		return err
	}
	var request *libssl.SignRequest
	if err := h.withSSL(func(ssl *libssl.Conn) { request = ssl.SignRequest() }); err != nil {
		return err
	}
	signature, err := h.signature(request)
	if err != nil {
		if request.TakesContext() {
			if err := h.ended(); err != nil { // the cause
				return err
			}
		}
		h.refused = h.signFailed(err) // without a signature, the next step is fatal
	}
	return h.withSSL(func(ssl *libssl.Conn) { ssl.SetSignature(signature) })
}

// signature calls the signer, a ContextSigner with a context that ends with the handshake.
func (h *handshake) signature(request *libssl.SignRequest) ([]byte, error) {
	if !request.TakesContext() {
		return request.Sign(h.ctx)
	}
	ctx, cancel := context.WithCancelCause(h.callbackContext())
	var watch sync.WaitGroup
	signed := make(chan struct{})
	watch.Go(func() { cancel(h.wait(signed)) })
	defer watch.Wait() // also if the signer panics: the next step must not meet it
	defer close(signed)
	return request.Sign(ctx)
}

// signFailed returns crypto/tls's error and alert for a failure to sign.
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
