//go:build cgo || ossl_nocgo

package ossl_test

import (
	"context"
	"crypto/tls"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// A panickyCache panics in Get, and keeps the context of that call.
type panickyCache struct {
	session.Cache
	ctx *context.Context
}

func (c panickyCache) Get(ctx context.Context, _ []byte, _ bool) ([]byte, error) {
	*c.ctx = ctx
	panic("in Get")
}

// TestCacheContextEndsAfterPanic checks that the context of a call to the cache is cancelled if the
// call panics.
func TestCacheContextEndsAfterPanic(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS12)
	sc.SessionTicketsDisabled = true // so that the cache is asked
	var ctx context.Context
	client := ossltest.NewContext(t, cc)
	server := ossltest.NewContext(t, sc, ossl.WithSessionCache(panickyCache{session.NewCache(10), &ctx}))
	for range 2 {
		a, b := tlstest.Loopback()
		done := make(chan struct{})
		go func() { defer close(done); client.Client(a, "").Handshake(); a.Close() }()
		func() {
			defer func() { recover() }()
			server.Server(b).Handshake()
		}()
		b.Close()
		<-done
	}
	if ctx == nil {
		t.Fatal("the cache was not asked")
	}
	if ctx.Err() == nil {
		t.Error("the context hasn't ended")
	}
}
