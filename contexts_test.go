//go:build cgo

package ossl

import (
	"crypto/tls"
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

// shakeContexts runs a handshake of two Contexts, and returns the error of each end. A server's
// refusal in TLS 1.3 reaches the client when it reads.
func shakeContexts(client, server *Context) (clientErr, serverErr error) {
	a, b := tlstest.Buffered()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() { done <- server.Server(b).Handshake() }()
	c := client.Client(a, tlstest.ServerName)
	if clientErr = c.Handshake(); clientErr != nil {
		a.Close()
	}
	return clientErr, <-done
}
