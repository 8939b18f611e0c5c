package ossl

import (
	"context"
	"crypto"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// answerHello decides on a ClientHello: which configuration, which certificate, which session. If another Context is chosen it
// returns the first step of the new SSL, which has been given the hello's bytes again.
func (h *handshake) answerHello() (*libssl.Step, error) {
	if h.c.context().hellos {
		switched, err := h.choose()
		if err != nil || switched != nil {
			return switched, err
		}
	}
	return nil, h.lookUp()
}

// choose decides on the configuration and the certificate.
func (h *handshake) choose() (*libssl.Step, error) {
	c := h.c
	ssl, err := c.engine.lock()
	if err != nil {
		return nil, err
	}
	if h.helloDone { // the Context chosen before has callbacks of its own, whose answer is known
		defer c.engine.unlock()
		return nil, h.useCredential(ssl)
	}
	records := stdtls.HelloRecords(ssl.Message())
	c.engine.unlock()

	h.helloDone = true
	config := c.context().config
	hello, answer, err := stdtls.ParseHello(h.ctx, records, config)
	if err != nil {
		if len(answer) > 0 {
			_ = h.send(answer)
		}
		return nil, err
	}
	h.complete(hello)
	before := c.context()
	if config.GetConfigForClient != nil {
		chosen, err := config.GetConfigForClient(hello)
		if err != nil {
			return nil, h.refuseHello(err, alertInternalError)
		}
		if chosen != nil {
			ctx, done, err := before.forConfig(chosen)
			if err != nil {
				return nil, h.refuseHello(err, alertInternalError)
			}
			defer done() // by then the SSL exists, or the handshake has failed
			c.ctx.Store(ctx)
			// What SupportsCertificate goes by is the new configuration.
			if hello, _, err = stdtls.ParseHello(h.ctx, records, c.context().config); err != nil {
				return nil, h.refuseHello(err, alertInternalError)
			}
			h.complete(hello)
		}
	}
	if err := h.chooseCertificate(hello); err != nil {
		return nil, err
	}
	if c.context() == before {
		ssl, err := c.engine.lock()
		if err != nil {
			return nil, err
		}
		defer c.engine.unlock()
		return nil, h.useCredential(ssl)
	}
	return h.restart(records)
}

// complete gives a parsed hello what is this connection's: parsing was a handshake of its own, whose context has ended.
func (h *handshake) complete(hello *tls.ClientHelloInfo) {
	hello.Conn = h.c.conn
	stdtls.SetHelloContext(hello, context.WithValue(h.ctx, contextKey{}, h.c.context()))
}

// refuseHello ends the handshake with an alert. Nothing is protected yet.
func (h *handshake) refuseHello(err error, alert uint8) error {
	_ = h.send(plaintextAlert(alert))
	return err
}

// chooseCertificate finds the server's certificate, as crypto/tls does.
func (h *handshake) chooseCertificate(hello *tls.ClientHelloInfo) error {
	ctx := h.c.context()
	cert, err := serverCertificate(ctx.config, hello)
	if err != nil {
		alert := uint8(alertInternalError)
		if err == errNoCertificates {
			alert = alertUnrecognizedName
		}
		return h.refuseHello(err, alert)
	}
	cred, err := ctx.credential(cert)
	if err != nil {
		err = &ConfigError{Field: "GetCertificate", Reason: "certificate can't be used", Err: err}
		return h.refuseHello(err, alertHandshakeFailure)
	}
	h.credential, h.local = cred, cert.Certificate
	h.key, _ = cert.PrivateKey.(*Key)
	return nil
}

// useCredential gives libssl the chosen certificate. The engine is locked.
func (h *handshake) useCredential(ssl *libssl.Conn) error {
	if err := ssl.UseCredential(h.credential); err != nil {
		_ = h.send(plaintextAlert(alertInternalError))
		return libraryError(err)
	}
	return nil
}

// restart goes on with another Context: SSL_set_SSL_CTX would move only part of it, so a new SSL is given the hello's bytes
// again.
func (h *handshake) restart(records []byte) (*libssl.Step, error) {
	c := h.c
	if _, err := c.engine.lock(); err != nil {
		return nil, err
	}
	c.engine.freeLocked()
	c.engine.unlock()
	rest := append([]byte(nil), c.in.data...)
	c.in.consume(len(c.in.data))
	c.in.set(append(records, rest...))
	step, err := h.begin()
	return &step, err
}

// serverCertificate is crypto/tls's Config.getCertificate.
func serverCertificate(config *tls.Config, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
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
