package ossl

import (
	"crypto/tls"
	"errors"
)

// CheckCertificate returns a [*ConfigError] if no server of the Context could use cert. It takes
// everything into account that matters in a handshake: security level, signature algorithms, suites,
// groups, FIPS mode and the host's policy. It runs a server's part of a handshake in memory, which
// signs with the key, for a client with the Context's own configuration. It does not sign with a
// crypto.Signer that is not one of Go's own key types, nor with a key in a token: for these it checks
// only the certificate and the strength of the key.
//
// It does not check the dates, the names, or whether clients trust the certificate. The error wraps
// [net.ErrClosed] if the Context was made for a configuration that GetConfigForClient no longer
// returns, and has been freed.
func (c *Context) CheckCertificate(cert *tls.Certificate) error {
	const field, reason = "Certificates", "certificate can't be used"
	if cert == nil {
		return &ConfigError{Field: field, Reason: reason, Err: errors.New("the certificate is nil")}
	}
	own := *cert // the caller's must not change
	cred, err := newCredential(&own, c.rule)
	if err == nil {
		if err = c.ssl.CheckCredential(cred); err != nil {
			err = libraryError(err)
		}
	}
	if err != nil {
		return &ConfigError{Field: field, Reason: reason, Err: err}
	}
	return nil
}

// contextKey is the key under which the context of a ClientHelloInfo holds the Context.
type contextKey struct{}

// ContextOf returns the Context whose callback received hello. It is the Context that the certificate
// is chosen for: the server's own, or the one made for the configuration that GetConfigForClient
// returned, which is freed some time after GetConfigForClient has stopped returning it. ContextOf
// returns nil if hello does not come from ossl.
func ContextOf(hello *tls.ClientHelloInfo) *Context {
	if hello == nil || hello.Context() == nil {
		return nil
	}
	ctx, _ := hello.Context().Value(contextKey{}).(*Context)
	return ctx
}
