//go:build (cgo || ossl_nocgo) && unix

package ossl_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// TestPKCS11Slow checks that handshakes that wait for a token hold a bounded number of threads, and
// that Close and cancellation end them. Other handshakes go on.
func TestPKCS11Slow(t *testing.T) {
	const handshakes, defaultMaxSigners = 400, 128
	k := tlstest.NewToken(t)
	key, err := keys.Load(k.URI+";object=ec;type=private", keys.WithProvider("pkcs11"),
		keys.WithPassphrase(func(string) ([]byte, error) { return []byte(k.PIN), nil }))
	if err != nil {
		t.Fatal(err)
	}
	slow := tlstest.PlainServer(tls.VersionTLS13)
	slow.Certificates = []tls.Certificate{tlstest.New(tlstest.Options{Key: key, Names: []string{tlstest.ServerName}})}
	ctx, err := ossl.NewContext(slow)
	if err != nil {
		t.Fatal(err)
	}
	fast := tlstest.PlainServer(tls.VersionTLS13)
	fast.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
	before := tlstest.Threads(t)
	open := k.Close()
	opened := false
	defer func() {
		if !opened {
			open()
		}
	}()

	var all sync.WaitGroup
	var succeeded, cancelled, closed atomic.Int32
	servers := make([]*ossl.Conn, handshakes)
	toCancel, cancel := context.WithCancel(t.Context())
	for i := range servers {
		a, b := tlstest.Buffered()
		servers[i] = ctx.Server(b)
		under := t.Context()
		if i%10 == 1 {
			under = toCancel
		}
		all.Go(func() {
			switch err := servers[i].HandshakeContext(under); {
			case err == nil:
				succeeded.Add(1)
			case errors.Is(err, context.Canceled):
				cancelled.Add(1)
			case errors.Is(err, net.ErrClosed):
				closed.Add(1)
			default:
				t.Error(err)
			}
		})
		all.Go(func() {
			client := tls.Client(a, tlstest.PlainClient(tls.VersionTLS13))
			_ = client.Handshake()
			runtime.KeepAlive(client)
		})
	}
	k.Await("signing", defaultMaxSigners)
	if n := tlstest.Threads(t) - before; n > defaultMaxSigners+100 {
		t.Errorf("%d more threads for %d handshakes that wait", n, handshakes)
	}
	if n := k.Count("signing"); n > defaultMaxSigners {
		t.Errorf("%d signatures are under way", n)
	}
	clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS13), fast)
	if clientErr != nil || serverErr != nil {
		t.Errorf("another Context: client: %v; server: %v", clientErr, serverErr)
	}
	for i := 0; i < handshakes; i += 10 {
		servers[i].Close()
	}
	cancel()
	opened = true
	open()
	all.Wait()
	t.Logf("%d succeeded, %d cancelled, %d closed", succeeded.Load(), cancelled.Load(), closed.Load())
	if succeeded.Load() != handshakes*8/10 || cancelled.Load() != handshakes/10 || closed.Load() != handshakes/10 {
		t.Error("not as expected")
	}
	for i, s := range servers {
		s.Close()
		if !s.Freed() {
			t.Errorf("connection %d keeps its C memory", i)
		}
	}
}
