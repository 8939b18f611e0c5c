package ossl

import (
	"crypto/tls"
	"errors"
	"net"
)

// CheckCertificate returns a [*ConfigError] if no server of the Context could use cert. It
// considers the same restrictions as a handshake: the security level, signature algorithms, suites,
// groups, FIPS mode and the host's policy. For this it runs the server's part of a handshake in
// memory, with a client that has the Context's own configuration, and signs with the key. It does
// not sign with a crypto.Signer that is not one of Go's own key types, nor with a key in a token:
// for these it checks only the certificate and the strength of the key.
//
// It does not check the dates, the names, or whether clients trust the certificate. If the Context
// was made for a configuration that GetConfigForClient no longer returns, and has been freed, the
// error wraps [net.ErrClosed].
func (c *Context) CheckCertificate(cert *tls.Certificate) error {
	const field, reason = "Certificates", "certificate can't be used"
	if cert == nil {
		return &ConfigError{Field: field, Reason: reason, Err: errors.New("the certificate is nil")}
	}
	own := *cert // the caller's must not change
	cred, err := newCredential(&own, c.rule)
	if err == nil {
		if err = c.ssl.CheckCredential(cred); err != nil {
			if err = libraryError(err); !errors.Is(err, net.ErrClosed) {
				return c.explainCertificate(field, cert, c.level, err)
			}
		}
	}
	if err != nil {
		return &ConfigError{Field: field, Reason: reason, Err: err}
	}
	return nil
}

// contextKey is the key under which the context of a ClientHelloInfo holds the Context.
type contextKey struct{}

// ContextOf returns the Context whose callback received hello, or nil if hello does not come from
// ossl. It is the Context that the certificate is chosen for: the server's own, or the one that was
// made for the configuration that GetConfigForClient returned. The latter, and that of a drop-in
// function, is freed some time after the last use of its configuration.
func ContextOf(hello *tls.ClientHelloInfo) *Context {
	if hello == nil || hello.Context() == nil {
		return nil
	}
	ctx, _ := hello.Context().Value(contextKey{}).(*Context)
	return ctx
}
