//go:build cgo

package ossl_test

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// firstFlight returns a client's first flight.
func firstFlight(config *tls.Config) []byte {
	a, b := net.Pipe()
	go tls.Client(a, config).Handshake()
	buf := make([]byte, 1<<14)
	n, _ := b.Read(buf)
	b.Close()
	return buf[:n]
}

// TestSignerTurnEnds: whatever ends a handshake that waits for the network also ends one that waits for its turn with a key.
func TestSignerTurnEnds(t *testing.T) {
	cert := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, ossl.WithMaxSigners(1))
	defer ossl.OccupyKey(cert.PrivateKey.(*ossl.Key))()
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
		{"deadline of the connection beneath", nil,
			func(c *ossl.Conn, _ net.Conn, _ func()) { c.NetConn().SetDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		{"context", nil, func(_ *ossl.Conn, _ net.Conn, cancel func()) { cancel() }, context.Canceled},
		{"Close", nil, func(c *ossl.Conn, _ net.Conn, _ func()) { c.Close() }, net.ErrClosed},
		{"close of the connection beneath", nil, func(c *ossl.Conn, _ net.Conn, _ func()) { c.NetConn().Close() }, net.ErrClosed},
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
					tlstest.WaitUntil(t, func() bool { return ossl.WaitingForTokens() == 1 })
					ends.end(c, b, cancel)
				}
				err := <-done
				if !errors.Is(err, ends.want) {
					t.Errorf("%v, want %v", err, ends.want)
				}
				if ossl.WaitingForTokens() != 0 {
					t.Error("it still waits for its turn")
				}
			})
		}
	}
}

// TestKeySignContext: a caller that waits for its turn to sign may give up.
func TestKeySignContext(t *testing.T) {
	key := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, ossl.WithMaxSigners(1)).PrivateKey.(*ossl.Key)
	release := ossl.OccupyKey(key)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := key.SignContext(ctx, nil, make([]byte, 32), crypto.SHA256)
		done <- err
	}()
	tlstest.WaitUntil(t, func() bool { return ossl.WaitingForTokens() == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release()
	if _, err := key.SignContext(t.Context(), nil, make([]byte, 32), crypto.SHA256); err != nil {
		t.Error(err)
	}
}

// TestSignerIsSparedDeadPeers: nothing is signed for a client that hung up after its ClientHello, or after the deadline.
func TestSignerIsSparedDeadPeers(t *testing.T) {
	for _, kind := range []string{"crypto.Signer", "Key"} {
		t.Run(kind, func(t *testing.T) {
			cert := tlstest.ServerCert(tlstest.P256)
			var made atomic.Int32
			signer := &tlstest.LookingSigner{Signer: cert.PrivateKey.(crypto.Signer), Before: func() { made.Add(1) }}
			signatures := made.Load
			if kind == "Key" {
				cert = ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, ossl.WithMaxSigners(1))
				signatures = func() int32 { return 0 } // OpenSSL's own; the handshake's error tells
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

// TestHangingSignersStopNobody: signers or callbacks that hang keep no other client of the same Context waiting.
func TestHangingSignersStopNobody(t *testing.T) {
	const hanging = 150 // more than the places that a Context once had
	for _, what := range []string{"Sign", "VerifyPeerCertificate", "VerifyConnection", "GetCertificate"} {
		for _, impl := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
			t.Run(what+"/"+impl.Name(), func(t *testing.T) {
				var asked atomic.Int32
				release := make(chan struct{})
				hang := func() {
					if asked.Add(1) <= hanging {
						<-release
					}
				}
				cert := tlstest.ServerCert(tlstest.P256)
				if what == "Sign" {
					cert.PrivateKey = &tlstest.LookingSigner{Signer: cert.PrivateKey.(crypto.Signer), Before: hang}
				}
				config := tlstest.ServerConfig(func(c *tls.Config) {
					c.ClientAuth = tls.RequireAnyClientCert
					c.Certificates = []tls.Certificate{cert}
					switch what {
					case "VerifyPeerCertificate":
						c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { hang(); return nil }
					case "VerifyConnection":
						c.VerifyConnection = func(tls.ConnectionState) error { hang(); return nil }
					case "GetCertificate":
						c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { hang(); return nil, nil }
					}
				})
				clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
					c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
				})
				var all sync.WaitGroup
				var failed atomic.Int32
				begin := func() (done chan error) {
					a, b := tlstest.Buffered()
					done = make(chan error, 1)
					all.Go(func() { tlstest.Std.Client(a, clientConfig).Handshake() })
					all.Go(func() {
						err := impl.Server(b, config).Handshake()
						if err != nil {
							failed.Add(1)
						}
						done <- err
					})
					return done
				}
				for range hanging {
					begin()
				}
				tlstest.WaitUntil(t, func() bool { return asked.Load() == hanging })
				for range 10 {
					if err := <-begin(); err != nil {
						t.Error(err)
					}
				}
				close(release)
				all.Wait()
				if n := failed.Load(); n != 0 {
					t.Errorf("%d handshakes failed", n)
				}
			})
		}
	}
}

// TestCallbacksUseTheirContext: many callbacks at once may shake hands by the Context that calls them.
func TestCallbacksUseTheirContext(t *testing.T) {
	const handshakes = 140
	for _, impl := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
		t.Run(impl.Name(), func(t *testing.T) {
			var barrier, all sync.WaitGroup
			barrier.Add(handshakes)
			var config *tls.Config
			config = tlstest.ServerConfig(func(c *tls.Config) {
				c.ServerName, c.RootCAs = tlstest.ServerName, tlstest.ClientConfig().RootCAs
				c.ClientAuth = tls.RequireAnyClientCert
				c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					cert := tlstest.ClientCert(tlstest.P256)
					return &cert, nil
				}
				c.VerifyConnection = func(s tls.ConnectionState) error {
					if s.PeerCertificates[0].Subject.CommonName != tlstest.ClientName {
						return nil
					}
					barrier.Done()
					barrier.Wait() // until all are here
					a, b := tlstest.Buffered()
					all.Go(func() { tlstest.Std.Server(b, tlstest.ServerConfig()).Handshake() })
					return impl.Client(a, config).HandshakeContext(t.Context())
				}
			})
			clientConfig := tlstest.ClientConfig(func(c *tls.Config) {
				c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			})
			var failed atomic.Pointer[error]
			for range handshakes {
				a, b := tlstest.Buffered()
				all.Go(func() { tlstest.Std.Client(a, clientConfig).Handshake() })
				all.Go(func() {
					if err := impl.Server(b, config).Handshake(); err != nil {
						failed.Store(&err)
					}
				})
			}
			all.Wait()
			if err := failed.Load(); err != nil {
				t.Error(*err)
			}
		})
	}
}

// TestKeySignsInCallback: a callback signs with the key of the server that calls it, which signs one thing at a time.
func TestKeySignsInCallback(t *testing.T) {
	cert := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, ossl.WithMaxSigners(1))
	server := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.Certificates = []tls.Certificate{cert}
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
			_, err := cert.PrivateKey.(*ossl.Key).Sign(nil, make([]byte, 32), crypto.SHA256)
			return err
		}
	}))
	a, b := tlstest.Buffered()
	go tls.Client(a, tlstest.ClientConfig(func(c *tls.Config) {
		c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
	})).Handshake()
	if err := server.Server(b).Handshake(); err != nil {
		t.Error(err)
	}
}

// TestKeyIsFreeDuringCallbacks: while a slow callback looks at a client's certificate, its handshake holds no turn of the
// server's key.
func TestKeyIsFreeDuringCallbacks(t *testing.T) {
	const turns = 3
	cert := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, ossl.WithMaxSigners(turns))
	inside, release := make(chan struct{}), make(chan struct{})
	slow := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.Certificates = []tls.Certificate{cert}
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
			inside <- struct{}{}
			<-release
			return nil
		}
	}))
	other := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) { c.Certificates = []tls.Certificate{cert} }))
	config := tlstest.ClientConfig(func(c *tls.Config) { c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)} })
	var all sync.WaitGroup
	begin := func(ctx *ossl.Context) chan error {
		a, b := tlstest.Buffered()
		done := make(chan error, 1)
		all.Go(func() { tls.Client(a, config).Handshake() })
		all.Go(func() { done <- ctx.Server(b).Handshake() })
		return done
	}
	for range 2 * turns {
		begin(slow)
		<-inside
	}
	if err := <-begin(other); err != nil {
		t.Error(err)
	}
	close(release)
	all.Wait()
}

// TestLastFlightBeforeEnd has a TLS 1.3 client, and one that resumes TLS 1.2, send its last flight with data and the end behind
// it while the server has to wait for its turn. The end must not keep the server from what came before it.
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

// TestTooManyPaused: when very many handshakes wait for Go, others that may have to are refused, and those that don't go on.
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
		t.Errorf("a server that asks nobody: client: %v; server: %v", client, server)
	}
	undo()
	if client, server := shake(asks); client != nil || server != nil {
		t.Errorf("afterwards: client: %v; server: %v", client, server)
	}
}

// TestKeyWithLongChain: a server whose chain is longer than what one step can give still signs in its turn.
func TestKeyWithLongChain(t *testing.T) {
	cert := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, ossl.WithMaxSigners(1))
	for len(cert.Certificate) < 40 {
		cert.Certificate = append(cert.Certificate, tlstest.CA().Cert.Raw)
	}
	server := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) { c.Certificates = []tls.Certificate{cert} }))
	release := ossl.OccupyKey(cert.PrivateKey.(*ossl.Key))
	a, b := tlstest.Loopback()
	defer a.Close()
	go tls.Client(a, tlstest.ClientConfig()).Handshake()
	s := server.Server(b)
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	tlstest.WaitUntil(t, func() bool { return ossl.WaitingForTokens() == 1 || len(done) > 0 })
	if ossl.WaitingForTokens() != 1 {
		t.Errorf("it did not wait for its turn: %v", <-done)
	}
	s.Close()
	<-done
	release()
}
