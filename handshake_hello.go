package ossl

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"syscall"

	"github.com/ossl-go/ossl/internal/heldkey"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// processClientHello decides on a ClientHello: the configuration, the certificate and the session.
func (h *handshake) processClientHello() error {
	if h.c.context().pausesAtHello {
		if err := h.chooseForClient(); err != nil || !h.begun {
			return err
		}
	}
	if decided, err := h.findPSK(); decided || err != nil {
		return err
	}
	if h.noCertificate != nil {
		return h.refuseHello(h.noCertificate.alert, h.noCertificate.err)
	}
	if h.c.context().unsigned != nil {
		if err := h.chooseUnsigned(); err != nil || !h.begun {
			return err
		}
	}
	return h.findSession()
}

// chooseForClient chooses the configuration and the certificate for a client.
func (h *handshake) chooseForClient() error {
	if h.helloDone { // on the SSL of another Context, whose certificate is known
		return h.useServerCredential()
	}
	var records, undotted []byte
	if err := h.withSSL(func(ssl *libssl.Conn) {
		records, undotted = stdtls.HelloRecords(ssl.Message()), stdtls.HelloRecordsWithoutDot(ssl.Message())
	}); err != nil {
		return err
	}
	h.helloDone = true
	hello, answer, err := h.clientHelloInfo(undotted)
	if err != nil {
		if len(answer) > 0 && h.send(answer) == nil {
			h.alert = answer[len(answer)-1]
		}
		return err
	}
	other, err := h.getConfigForClient(hello)
	if err == nil && other { // SupportsCertificate must use the other configuration
		hello, _, err = h.clientHelloInfo(undotted)
	}
	if err != nil {
		return h.refuseHello(alertInternalError, err)
	}
	if !h.needsPSK() {
		alert, err := h.pickCertificate(hello)
		switch {
		case err == nil:
		case h.c.context().opts.psk.find != nil:
			h.noCertificate = &refusal{err, alert}
		default:
			return h.refuseHello(alert, err)
		}
	}
	if other {
		return h.restart(records)
	}
	return h.useServerCredential()
}

// clientHelloInfo makes crypto/tls parse the records of a ClientHello. If crypto/tls refuses it,
// answer is the alert that crypto/tls sends.
func (h *handshake) clientHelloInfo(records []byte) (hello *tls.ClientHelloInfo, answer []byte, err error) {
	ctx := h.c.context()
	hello, answer, err = stdtls.ParseHello(h.ctx, records, ctx.config)
	if err != nil {
		return nil, answer, err
	}
	// crypto/tls has parsed it in a handshake of its own.
	hello.Conn = h.c.conn
	stdtls.SetHelloContext(hello, context.WithValue(h.callbackContext(), contextKey{}, ctx))
	return hello, nil, nil
}

// getConfigForClient calls the callback of that name. If it returns a configuration, the
// Context for that becomes the connection's, and other is true.
func (h *handshake) getConfigForClient(hello *tls.ClientHelloInfo) (other bool, err error) {
	ctx := h.c.context()
	if ctx.config.GetConfigForClient == nil {
		return false, nil
	}
	config, err := ctx.config.GetConfigForClient(hello)
	if config == nil || err != nil {
		return false, err
	}
	chosen, err := ctx.chosen.context(config, ctx.opts, ctx)
	if err != nil {
		return false, h.orHandOver(err, config, nil)
	}
	h.c.pinned = chosen // the SSL of the first Context has unpinned that
	h.c.ctx.Store(chosen.ctx)
	return true, nil
}

// restart makes the next step create an SSL of the connection's new Context and give it the hello
// again. SSL_set_SSL_CTX would move only a part of the old SSL to that Context.
func (h *handshake) restart(records []byte) error {
	if err := h.withSSL(func(*libssl.Conn) { h.c.engine.freeLocked() }); err != nil {
		return err
	}
	h.begun, h.rereads = false, true
	rest := bytes.Clone(h.in.Data)
	h.in.Consume(len(rest))
	h.in.Set(append(records, rest...))
	return nil
}

// pickCertificate finds the server's certificate. If there is none, it returns crypto/tls's alert.
func (h *handshake) pickCertificate(hello *tls.ClientHelloInfo) (alert uint8, err error) {
	ctx := h.c.context()
	cert, err := getCertificate(ctx.config, hello)
	switch {
	case err == errNoCertificates:
		return alertUnrecognizedName, err
	case err != nil:
		return alertInternalError, err
	}
	h.credential, err = ctx.credential(cert)
	if errors.Is(err, syscall.ENOMEM) {
		return alertInternalError, err
	}
	if err != nil {
		err = &ConfigError{Field: "GetCertificate", Reason: "certificate can't be used", Err: err}
		return alertHandshakeFailure, h.orHandOver(err, ctx.config, cert)
	}
	h.local, h.certificate = cert.Certificate, cert
	h.key = heldkey.In(cert.PrivateKey)
	return 0, nil
}

// useServerCredential gives libssl the server's certificate, if it has one.
func (h *handshake) useServerCredential() error {
	if h.credential == nil {
		return nil
	}
	err := h.useCredential(h.credential, "GetCertificate", h.certificate)
	if err != nil {
		return h.refuseHello(alertInternalError, h.orHandOver(err, h.c.context().config, h.certificate))
	}
	return nil
}

// useCredential gives libssl the certificate to send, or nil for none. callback names the function
// that chose it, if it is not in Certificates.
func (h *handshake) useCredential(cred *libssl.Credential, callback string, cert *tls.Certificate) error {
	ctx := h.c.context()
	var failure error
	if err := h.withSSL(func(ssl *libssl.Conn) { failure = ssl.UseCredential(cred) }); err != nil {
		return err
	}
	if failure == nil {
		return nil
	}
	failure = libraryError(failure)
	if cert == nil {
		return failure
	}
	field := callback
	for i := range ctx.config.Certificates {
		if cert == &ctx.config.Certificates[i] {
			field = "Certificates"
		}
	}
	return ctx.explainCertificate(field, cert, ctx.level, failure)
}

// getCertificate is crypto/tls's Config.getCertificate.
func getCertificate(config *tls.Config, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if config.GetCertificate != nil && (len(config.Certificates) == 0 || len(hello.ServerName) > 0) {
		cert, err := config.GetCertificate(hello)
		if cert != nil || err != nil {
			return cert, err
		}
	}
	if len(config.Certificates) == 0 {
		return nil, errNoCertificates
	}
	if len(config.Certificates) == 1 {
		return &config.Certificates[0], nil
	}
	//lint:ignore SA1019 deprecated, and still honoured by crypto/tls
	if byName := config.NameToCertificate; byName != nil {
		name := strings.ToLower(hello.ServerName)
		if cert, ok := byName[name]; ok {
			return cert, nil
		}
		if name != "" {
			labels := strings.Split(name, ".")
			labels[0] = "*"
			if cert, ok := byName[strings.Join(labels, ".")]; ok {
				return cert, nil
			}
		}
	}
	for i := range config.Certificates {
		if hello.SupportsCertificate(&config.Certificates[i]) == nil {
			return &config.Certificates[i], nil
		}
	}
	return &config.Certificates[0], nil
}
