//go:build (cgo || ossl_nocgo) && unix

package ossl_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDrainEnds checks that the number of bytes that Close reads from its socket is bounded, so
// that a peer that goes on sending can't delay it.
func TestDrainEnds(t *testing.T) {
	client, server := ossltest.Connected(t, tlstest.Loopback, func(c, _ *tls.Config) { c.MaxVersion = tls.VersionTLS13 })
	const much = ossl.MaxDrained + 40_000
	from, to := server.NetConn().(*net.TCPConn), client.NetConn().(*net.TCPConn)
	to.SetReadBuffer(4 * much)
	go func() {
		from.Write(make([]byte, much))
		from.CloseWrite()
	}()
	tlstest.AwaitArrival(t, to)
	client.Drain()
	left, err := io.Copy(io.Discard, to)
	if err != nil {
		t.Fatal(err)
	}
	if left < much-ossl.MaxDrained || left >= much {
		t.Errorf("%d of %d bytes are left; no more than %d may be taken", left, much, ossl.MaxDrained)
	}
}
