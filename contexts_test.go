//go:build cgo || ossl_nocgo

package ossl

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

func contextOf(t *testing.T, config *tls.Config, opts ...Option) *Context {
	t.Helper()
	ctx, err := NewContext(config, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// shakeContexts runs a handshake of two Contexts, and returns the error of each end.
func shakeContexts(client, server *Context) (clientErr, serverErr error) {
	type end = interface{ Handshake() error }
	return tlstest.TryShake(
		func(conn net.Conn) end { return client.Client(conn, tlstest.ServerName) },
		func(conn net.Conn) end { return server.Server(conn) })
}
