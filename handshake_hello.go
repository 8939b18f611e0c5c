package ossl

import (
	"context"
	"crypto/tls"
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
