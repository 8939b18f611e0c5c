// Package libp2ptls is the libp2p TLS security transport on OpenSSL.
package libp2ptls
