//go:build cgo || ossl_nocgo

package ossl_test

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// A slowSigner is a key that signs when the test allows it, such as a key in a distant HSM.
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

// TestThousandSlowSigners runs a thousand handshakes that wait for a slow key at the same time.
// They hold no thread, other connections go on, and Close and cancellation work.
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
		s.Close() // even those that were cancelled at the very end of a handshake that succeeded
		if !s.Freed() {
			t.Errorf("connection %d keeps its C memory", i)
		}
	}
}

// firstFlight returns a client's first flight.
func firstFlight(config *tls.Config) []byte {
	a, b := net.Pipe()
	go tls.Client(a, config).Handshake()
	buf := make([]byte, 1<<14)
	n, _ := b.Read(buf)
	b.Close()
	return buf[:n]
}

// TestSignerTurnEnds checks that everything that stops a handshake waiting for the network also
// stops a handshake waiting for its turn with a key.
func TestSignerTurnEnds(t *testing.T) {
	cert := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, keys.WithMaxSigners(1))
	defer ossltest.OccupyKey(cert.PrivateKey)()
	server := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) { c.Certificates = []tls.Certificate{cert} }))
	client := ossltest.NewContext(t, tlstest.ClientConfig(func(c *tls.Config) { c.Certificates = []tls.Certificate{cert} }))
	clientConfig := tlstest.ClientConfig()
	asking := tlstest.ServerConfig(func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert })
	for _, ends := range []struct {
		name   string
		before func(c *ossl.Conn)
		end    func(c *ossl.Conn, peer net.Conn, cancel func())
		want   error
	}{
		{"deadline", func(c *ossl.Conn) { c.SetDeadline(time.Now().Add(10 * time.Millisecond)) }, nil, os.ErrDeadlineExceeded},
		{"deadline set meanwhile", nil, func(c *ossl.Conn, _ net.Conn, _ func()) { c.SetDeadline(time.Unix(1, 0)) },
			os.ErrDeadlineExceeded},
		{"read deadline", nil, func(c *ossl.Conn, _ net.Conn, _ func()) { c.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		{"write deadline", nil, func(c *ossl.Conn, _ net.Conn, _ func()) { c.SetWriteDeadline(time.Unix(1, 0)) },
			os.ErrDeadlineExceeded},
		{"deadline of the underlying connection", nil,
			func(c *ossl.Conn, _ net.Conn, _ func()) { c.NetConn().SetDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		{"context", nil, func(_ *ossl.Conn, _ net.Conn, cancel func()) { cancel() }, context.Canceled},
		{"Close", nil, func(c *ossl.Conn, _ net.Conn, _ func()) { c.Close() }, net.ErrClosed},
		{"close of the underlying connection", nil, func(c *ossl.Conn, _ net.Conn, _ func()) { c.NetConn().Close() }, net.ErrClosed},
		{"the peer's end", nil, func(_ *ossl.Conn, peer net.Conn, _ func()) { peer.Close() }, io.EOF},
	} {
		for _, role := range []string{"server", "client"} {
			t.Run(ends.name+"/"+role, func(t *testing.T) {
				a, b := tlstest.Loopback()
				defer a.Close()
				defer b.Close()
				var c *ossl.Conn
				if role == "server" {
					c = server.Server(a)
					go tls.Client(b, clientConfig).Handshake()
				} else {
					c = client.Client(a, "")
					go tls.Server(b, asking).Handshake()
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				if ends.before != nil {
					ends.before(c)
				}
				go func() { done <- c.HandshakeContext(ctx) }()
				if ends.end != nil {
					tlstest.WaitUntil(t, func() bool { return gate.Tokens.Waiting() == 1 })
					ends.end(c, b, cancel)
				}
				err := <-done
				if !errors.Is(err, ends.want) {
					t.Errorf("%v, want %v", err, ends.want)
				}
				if gate.Tokens.Waiting() != 0 {
					t.Error("it still waits for its turn")
				}
			})
		}
	}
}

// TestSignerIsSparedDeadPeers checks that nothing is signed for a client that hung up after its
// ClientHello, or after the deadline.
func TestSignerIsSparedDeadPeers(t *testing.T) {
	for _, kind := range []string{"crypto.Signer", "Key"} {
		t.Run(kind, func(t *testing.T) {
			cert := tlstest.ServerCert(tlstest.P256)
			var made atomic.Int32
			signer := &tlstest.LookingSigner{Signer: cert.PrivateKey.(crypto.Signer), Before: func() { made.Add(1) }}
			signatures := made.Load
			if kind == "Key" {
				cert = ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, keys.WithMaxSigners(1))
				signatures = func() int32 { return 0 } // OpenSSL's own key: the handshake's error is checked
			} else {
				cert.PrivateKey = signer
			}
			server := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) { c.Certificates = []tls.Certificate{cert} }))
			hello := firstFlight(tlstest.ClientConfig())
			for _, how := range []string{"hung up", "hung up behind more data", "deadline"} {
				a, b := tlstest.Loopback()
				a.Write(hello)
				if how == "hung up behind more data" {
					a.Write([]byte{20, 3, 3, 0, 1, 1})
				}
				s := server.Server(b)
				want := io.EOF
				if how == "deadline" {
					s.SetWriteDeadline(time.Unix(1, 0))
					want = os.ErrDeadlineExceeded
				} else {
					a.Close()
					tlstest.WaitUntil(t, func() bool { return ossl.PeerEnded(b) })
				}
				if err := s.Handshake(); !errors.Is(err, want) {
					t.Errorf("%s: %v", how, err)
				}
				if n := signatures(); n != 0 {
					t.Errorf("%s: %d signatures", how, n)
				}
				if n := ossl.BytesSent(s); n != 0 {
					t.Errorf("%s: %d bytes were sent", how, n)
				}
				s.Close()
				a.Close()
			}
		})
	}
}

// In TestLastFlightBeforeEnd, a TLS 1.3 client, and one that resumes TLS 1.2, sends its last flight
// with data and the end behind it while the server waits for its turn. The end must not keep the
// server from reading the data before it.
func TestLastFlightBeforeEnd(t *testing.T) {
	for _, version := range tlstest.Versions {
		cc, sc := tlstest.Resuming(version)
		var full atomic.Bool
		free := func() {}
		sc.VerifyConnection = func(tls.ConnectionState) error { // before the server sends its flight
			if full.Load() {
				free = ossl.FillSteps()
			}
			return nil
		}
		server := ossltest.NewContext(t, sc)
		for visit := range 2 { // the second one resumes
			full.Store(visit == 1 || version == tls.VersionTLS13)
			a, b := tlstest.Loopback()
			s := server.Server(b)
			done := make(chan error, 1)
			var got []byte
			go func() {
				err := s.Handshake()
				if err == nil {
					got, err = io.ReadAll(s)
				}
				s.Write([]byte("x")) // with a ticket
				s.Close()
				done <- err
			}()
			c := tls.Client(a, cc)
			c.Write([]byte("important"))
			c.CloseWrite()
			a.(*net.TCPConn).CloseWrite()
			if full.Load() {
				tlstest.WaitUntil(t, func() bool { return ossl.WaitingForSteps() > 0 })
				time.Sleep(3 * ossl.LookAtPeer) // it looks at the client, and sees the end
				free()
			}
			if err := <-done; err != nil || string(got) != "important" {
				t.Errorf("%s, visit %d: %q, %v", tls.VersionName(version), visit, got, err)
			}
			io.Copy(io.Discard, c)
			c.Close()
		}
	}
}

// TestTooManyPaused checks that when very many handshakes wait for Go, others that may need to wait
// are refused, and all others go on.
func TestTooManyPaused(t *testing.T) {
	undo := ossl.AddPaused(ossl.MaxPaused)
	asks := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }))
	plain := ossltest.NewContext(t, tlstest.ServerConfig())
	shake := func(ctx *ossl.Context) (client, server error) {
		a, b := tlstest.Buffered()
		done := make(chan error, 1)
		go func() { done <- ctx.Server(b).Handshake() }()
		client = tls.Client(a, tlstest.ClientConfig()).Handshake()
		return client, <-done
	}
	if client, server := shake(asks); client == nil || server == nil {
		t.Errorf("client: %v; server: %v", client, server)
	}
	if client, server := shake(plain); client != nil || server != nil {
		t.Errorf("a server without callbacks: client: %v; server: %v", client, server)
	}
	undo()
	if client, server := shake(asks); client != nil || server != nil {
		t.Errorf("afterwards: client: %v; server: %v", client, server)
	}
}

// TestKeyWithLongChain checks that a server whose chain is longer than the output of one step still
// signs in its turn.
func TestKeyWithLongChain(t *testing.T) {
	cert := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, keys.WithMaxSigners(1))
	for len(cert.Certificate) < 40 {
		cert.Certificate = append(cert.Certificate, tlstest.CA().Cert.Raw)
	}
	server := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) { c.Certificates = []tls.Certificate{cert} }))
	release := ossltest.OccupyKey(cert.PrivateKey)
	a, b := tlstest.Loopback()
	defer a.Close()
	go tls.Client(a, tlstest.ClientConfig()).Handshake()
	s := server.Server(b)
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	tlstest.WaitUntil(t, func() bool { return gate.Tokens.Waiting() == 1 || len(done) > 0 })
	if gate.Tokens.Waiting() != 1 {
		t.Errorf("it did not wait for its turn: %v", <-done)
	}
	s.Close()
	<-done
	release()
}
