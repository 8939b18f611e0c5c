// Package libp2ptls provides libp2p's TLS 1.3 security transport with the host's OpenSSL, through
// package ossl.
//
// It implements the same protocol as go-libp2p's own transport, and replaces it in a host:
//
//	host, err := libp2p.New(libp2p.Security(libp2ptls.ID, libp2ptls.New))
//
// Errors, alerts and the choice of a stream multiplexer are the same as with go-libp2p's transport.
// docs/LIBP2P.md describes libp2p's rules for TLS and the few differences.
package libp2ptls
