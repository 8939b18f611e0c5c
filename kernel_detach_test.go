//go:build (cgo || ossl_nocgo) && linux

package ossl_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestKernelTLSDetach moves connections for which the kernel seals: it goes on to seal, with the answers to
// KeyUpdates that wait, and after the end of the other direction.
func TestKernelTLSDetach(t *testing.T) {
	seals := needKernelTLS(t)
	eachKernelSuite(t, func(t *testing.T, isClient bool, version, suite uint16) {
		if !seals(version) {
			t.Skipf("this kernel doesn't seal %s", tls.VersionName(version))
		}
		own, peer := kernelConn(t, isClient, version, suite)
		ctx := ossltest.NewContext(t, tlstest.ServerConfig())
		if version == tls.VersionTLS13 {
			ctx = ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithTLS13CipherSuites(suite))
		}
		own = move(t, ctx, own) // before the first Write, in which the kernel gets the key
		if own.KernelTLS() {
			t.Error("the kernel seals already")
		}
		kernel := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithKernelTLS())
		own = move(t, kernel, own)
		for range 3 {
			say(t, own, peer, "from the kernel")
			say(t, peer, own, "to us")
			if !own.KernelTLS() {
				t.Error("the kernel doesn't seal")
			}
			own = move(t, ctx, own)
		}
		if version == tls.VersionTLS13 {
			if err := own.KeyUpdate(true); err != nil {
				t.Fatal(err)
			}
			own = move(t, ctx, own)
			say(t, own, peer, "with the next key")
			say(t, peer, own, "with the peer's next key")
			own = move(t, ctx, own)
			say(t, own, peer, "after it")
		}
		peer.CloseWrite()
		if _, err := own.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		own = move(t, ctx, own)
		if err := own.CloseWrite(); err != nil {
			t.Error(err)
		}
		if _, err := peer.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		own = move(t, ctx, own)
		if _, err := own.Write([]byte("x")); err == nil {
			t.Error("a Write after CloseWrite")
		}
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestKernelTLSDetachKeys: a state is refused for a socket whose kernel has no key or another one.
func TestKernelTLSDetachKeys(t *testing.T) {
	needKernelTLS(t)
	const version, suite = tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	plain, _ := tlstest.Loopback()
	other, otherPeer := kernelConn(t, false, version, suite)
	say(t, other, otherPeer, "text")
	ctx := ossltest.NewContext(t, tlstest.ServerConfig())
	for name, conn := range map[string]interface{ Close() error }{"no key": plain, "another key": other} {
		own, peer := kernelConn(t, false, version, suite)
		say(t, own, peer, "text")
		state, err := own.Detach(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		to := plain
		if conn == other {
			to = other.NetConn()
		}
		if c, err := ctx.Attach(to, state); !errors.Is(err, ossl.ErrBadState) {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	say(t, other, otherPeer, "it goes on")
}
