//go:build cgo

package ossl_test

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// slowSigner is a key that answers when it is allowed to, as one in a distant HSM does.
type slowSigner struct {
	crypto.Signer
	waiting atomic.Int32
	allowed chan struct{}
}

func (s *slowSigner) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	s.waiting.Add(1)
	<-s.allowed
	return s.Signer.Sign(rand, digest, opts)
}

// TestThousandSlowSigners: a thousand handshakes wait for a slow key at the same time and hold no thread, other connections go
// on, and Close and cancellation work meanwhile.
func TestThousandSlowSigners(t *testing.T) {
	const handshakes = 1000
	cert := tlstest.ServerCert(tlstest.P256)
	signer := &slowSigner{Signer: cert.PrivateKey.(crypto.Signer), allowed: make(chan struct{})}
	cert.PrivateKey = signer
	slow := ossltest.NewContexts(t, func(_, s *tls.Config) { s.Certificates = []tls.Certificate{cert} })
	fast := ossltest.NewContexts(t, nil)
	before := tlstest.Threads(t)

	var all sync.WaitGroup
	var succeeded, closed, cancelled atomic.Int32
	var servers [handshakes]*ossl.Conn
	toCancel, cancel := context.WithCancel(t.Context())
	for i := range handshakes {
		a, b := tlstest.Buffered()
		servers[i] = slow.Server.Server(b)
		ctx := t.Context()
		if i%10 == 1 {
			ctx = toCancel
		}
		all.Go(func() {
			switch err := servers[i].HandshakeContext(ctx); {
			case err == nil:
				succeeded.Add(1)
			case errors.Is(err, context.Canceled):
				cancelled.Add(1)
			default:
				closed.Add(1)
			}
		})
		all.Go(func() { slow.Client.Client(a, "").Handshake() })
	}
	deadline := time.Now().Add(60 * time.Second)
	for signer.waiting.Load() < handshakes {
		if time.Now().After(deadline) {
			t.Fatalf("only %d handshakes reached the signer", signer.waiting.Load())
		}
		time.Sleep(time.Millisecond)
	}
	n := tlstest.Threads(t) - before
	t.Logf("%d more threads for %d waiting handshakes", n, handshakes)
	if !libssl.PausesHoldThreads() && n > 8*runtime.GOMAXPROCS(0)+32 {
		t.Errorf("%d more threads for %d waiting handshakes", n, handshakes)
	}

	// Another Context's connections go on.
	a, b := tlstest.Buffered()
	talk(t, fast, a, b, []byte("still here"), 3)

	// Close returns at once, though the handshake waits for the signer.
	for i := 0; i < handshakes; i += 10 {
		start := time.Now()
		servers[i].Close()
		if d := time.Since(start); d > tlstest.Patience {
			t.Fatalf("Close took %v", d)
		}
	}
	cancel()
	close(signer.allowed)
	all.Wait()
	t.Logf("%d handshakes: %d succeeded, %d closed, %d cancelled; %d signatures", handshakes, succeeded.Load(), closed.Load(),
		cancelled.Load(), signer.waiting.Load())
	if succeeded.Load() != handshakes-200 || closed.Load() != 100 || cancelled.Load() != 100 {
		t.Errorf("%d succeeded, %d closed, %d cancelled", succeeded.Load(), closed.Load(), cancelled.Load())
	}
	for i, s := range servers {
		s.Close() // also those that were cancelled at the very end of a handshake that succeeded
		if !s.Freed() {
			t.Errorf("connection %d keeps its C memory", i)
		}
	}
}
