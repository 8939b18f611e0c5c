package ossl

import (
	"crypto/tls"
	"errors"
)

// CheckCertificate returns an error if no server of the Context could serve with cert: a [*ConfigError]. It goes by all that a
// handshake goes by: security level, signature algorithms, suites, groups, FIPS mode and the host's policy. A server in memory
// signs with the key, for a client that offers what the Context has. If the key is a crypto.Signer other than Go's own, or of a
// token, it is not asked to sign, and the certificate and the key's strength are all that is checked.
//
// Dates, names and whether clients trust the certificate are not checked.
func (c *Context) CheckCertificate(cert *tls.Certificate) error {
	const field, reason = "Certificates", "certificate can't be used"
	if cert == nil {
		return &ConfigError{Field: field, Reason: reason, Err: errors.New("nil")}
	}
	own := *cert // the user's is not to be changed
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

// contextKey is the key of a ClientHelloInfo's context under which the Context is.
type contextKey struct{}

// ContextOf returns the Context whose callback was given hello: the one for which a certificate is chosen, whether it is the
// server's own or made of what GetConfigForClient has returned. It returns nil if hello is of another TLS than ossl's.
func ContextOf(hello *tls.ClientHelloInfo) *Context {
	if hello == nil || hello.Context() == nil {
		return nil
	}
	ctx, _ := hello.Context().Value(contextKey{}).(*Context)
	return ctx
}
