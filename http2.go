package ossl

import (
	"crypto/tls"
	"slices"
)

// protoHTTP2 is HTTP/2's name in ALPN: RFC 9113, section 3.1.
const protoHTTP2 = "h2"

// offerHTTP2 adds HTTP/2 to the protocols of a configuration that is the Context's own.
func offerHTTP2(config *tls.Config) {
	if !slices.Contains(config.NextProtos, protoHTTP2) {
		config.NextProtos = append(slices.Clip(config.NextProtos), protoHTTP2) // the array is the caller's
	}
}

// isHTTP2Suite reports whether HTTP/2 permits a TLS 1.2 suite: those with forward secrecy and an AEAD (RFC 9113, appendix A,
// lists the others).
func isHTTP2Suite(id uint16) bool {
	switch id {
	case tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:
		return true
	}
	return false
}
