// Package libp2ptls is libp2p's TLS 1.3 security transport on the host's OpenSSL, by package ossl.
//
// It takes the place of go-libp2p's own transport, whose protocol it speaks, and is plugged in where that one is:
//
//	host, err := libp2p.New(libp2p.Security(libp2ptls.ID, libp2ptls.New))
//
// Errors, alerts and the choice of a stream multiplexer are those of go-libp2p's transport. docs/LIBP2P.md has libp2p's rules for
// TLS and the few differences.
package libp2ptls
