//go:build cgo

package ossl_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestCloseRacesReadWrite(t *testing.T) {
	for name, pair := range map[string]func() (net.Conn, net.Conn){"tcp": tlstest.Loopback, "pipe": tlstest.NetPipe} {
		t.Run(name, func(t *testing.T) {
			for range 30 {
				p := ossltest.NewContexts(t, nil)
				a, b := pair()
				client, server := p.Client.Client(a, ""), p.Server.Server(b)
				var all sync.WaitGroup
				for _, c := range []*ossl.Conn{client, server} {
					all.Go(func() {
						buf := make([]byte, 3000)
						for {
							if _, err := c.Read(buf); err != nil {
								return
							}
						}
					})
					all.Go(func() {
						buf := make([]byte, 20000)
						for {
							if _, err := c.Write(buf); err != nil {
								return
							}
						}
					})
					all.Go(func() {
						time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
						c.ConnectionState()
						c.Close()
						c.Close()
					})
				}
				all.Wait()
				if !client.Freed() || !server.Freed() {
					t.Fatal("C memory is kept after Close")
				}
			}
		})
	}
}

// TestBothDirectionsAtOnce moves different data both ways at the same time, with key updates in between.
func TestBothDirectionsAtOnce(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			if version == tls.VersionTLS13 && ossltest.RecordsByLibssl() && ossltest.BreaksAtKeyUpdate() {
				t.Skipf("OpenSSL %s breaks where a KeyUpdate is sent between the parts of a record", ossltest.Version())
			}
			client, server := ossltest.Connected(t, tlstest.Loopback, func(c, _ *tls.Config) { c.MaxVersion = version })
			const size = 3 << 20
			var all sync.WaitGroup
			for i, ends := range [][2]*ossl.Conn{{client, server}, {server, client}} {
				data := make([]byte, size)
				chacha := rand.NewChaCha8([32]byte{byte(i)})
				chacha.Read(data)
				all.Go(func() {
					asked := 0 // answers are no application data; 16 in a row, updates of one's own included, are too many
					for rest := data; len(rest) > 0; {
						n := min(len(rest), 1+rand.IntN(200000))
						if _, err := ends[0].Write(rest[:n]); err != nil {
							t.Error(err)
							return
						}
						rest = rest[n:]
						if version == tls.VersionTLS13 {
							ask := rand.IntN(2) == 0 && asked < 12
							if ask {
								asked++
							}
							if err := ends[0].KeyUpdate(ask); err != nil {
								t.Error(err)
								return
							}
						}
					}
					if err := ends[0].CloseWrite(); err != nil {
						t.Error(err)
					}
				})
				all.Go(func() {
					got, err := io.ReadAll(ends[1])
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("got %d bytes, %v", len(got), err)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestKeyUpdateAnswered asks a peer that only reads for a key update: its answer comes without a Write of its user's.
func TestKeyUpdateAnswered(t *testing.T) {
	for _, asker := range []string{"client", "server"} {
		t.Run(asker, func(t *testing.T) {
			recorded := make(chan int, 100)
			a, b := tlstest.Loopback()
			p := ossltest.NewContexts(t, nil)
			client, server := p.Client.Client(countedWrites{a, recorded}, ""), p.Server.Server(countedWrites{b, recorded})
			defer client.Close()
			defer server.Close()
			go server.Handshake()
			if err := client.Handshake(); err != nil {
				t.Fatal(err)
			}
			if err := server.Handshake(); err != nil {
				t.Fatal(err)
			}
			ask, answer := client, server
			if asker == "server" {
				ask, answer = server, client
			}
			for len(recorded) > 0 {
				<-recorded
			}
			read := make(chan error, 2)
			buf := make([]byte, 10)
			go func() { _, err := io.ReadFull(answer, buf[:4]); read <- err }()
			if err := ask.KeyUpdate(true); err != nil {
				t.Fatal(err)
			}
			if _, err := ask.Write([]byte("data")); err != nil {
				t.Fatal(err)
			}
			if err := <-read; err != nil {
				t.Fatal(err)
			}
			go answer.Read(make([]byte, 10)) // goes on reading
			for i := range 3 {               // the request, the data, the answer
				select {
				case <-recorded:
				case <-time.After(tlstest.Patience):
					t.Fatalf("only %d writes: no answer", i)
				}
			}
			// What is sent under the new key is read.
			go func() { _, err := io.ReadFull(ask, buf[4:8]); read <- err }()
			if _, err := answer.Write([]byte("back")); err != nil {
				t.Fatal(err)
			}
			if err := <-read; err != nil || string(buf[:8]) != "databack" {
				t.Fatalf("%q, %v", buf[:8], err)
			}
		})
	}
}

type countedWrites struct {
	net.Conn
	writes chan<- int
}

func (c countedWrites) Write(b []byte) (int, error) {
	c.writes <- len(b)
	return c.Conn.Write(b)
}

func TestDeadlines(t *testing.T) {
	for name, pair := range map[string]func() (net.Conn, net.Conn){"tcp": tlstest.Loopback, "pipe": tlstest.NetPipe} {
		t.Run(name, func(t *testing.T) {
			client, server := ossltest.Connected(t, pair, nil)
			buf := make([]byte, 10)
			client.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			_, err := client.Read(buf)
			var timeout net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Fatalf("got %v", err)
			}
			// A deadline that has passed can be moved, and nothing was lost.
			client.SetReadDeadline(time.Time{})
			go server.Write([]byte("late"))
			if n, err := client.Read(buf); err != nil || string(buf[:n]) != "late" {
				t.Fatalf("%q, %v", buf[:n], err)
			}
			// A deadline set while a Read waits ends it.
			done := make(chan error, 1)
			go func() { _, err := client.Read(buf); done <- err }()
			time.Sleep(5 * time.Millisecond)
			client.SetReadDeadline(time.Now())
			if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			// A Write cut short ends the sending for good.
			client.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
			if _, err := client.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			client.SetWriteDeadline(time.Time{})
			if _, err := client.Write([]byte("more")); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("got %v after a Write that timed out", err)
			}
		})
	}
}

// TestSocketReadErrors: Read has the errors of the connection beneath, though it reads from the socket itself.
func TestSocketReadErrors(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "tcp4": "127.0.0.1:0", "unix": t.TempDir() + "/socket"} {
		t.Run(network, func(t *testing.T) {
			client, _ := ossltest.Connected(t, func() (net.Conn, net.Conn) { return tlstest.Sockets(network, address) }, nil)
			buf := make([]byte, 1)
			for _, cause := range []func() error{
				func() error { return client.SetReadDeadline(time.Unix(1, 0)) },
				client.NetConn().Close,
			} {
				if err := cause(); err != nil {
					t.Fatal(err)
				}
				_, want := client.NetConn().Read(buf)
				if _, got := client.Read(buf); want == nil || !reflect.DeepEqual(got, want) {
					t.Errorf("got %#v, want %#v", got, want)
				}
			}
		})
	}
}

// TestReadDoesNotWaitForBlockedWrite makes a Read answer a key update while a Write of the same connection is stuck.
func TestReadDoesNotWaitForBlockedWrite(t *testing.T) {
	begun := make(chan int, 1000)
	client, server := ossltest.Connected(t, func() (net.Conn, net.Conn) {
		a, b := tlstest.NetPipe()
		return countedWrites{a, begun}, b
	}, nil)
	for len(begun) > 0 { // the handshake's
		<-begun
	}
	stuck := make(chan error, 1)
	go func() { _, err := client.Write(make([]byte, 1<<20)); stuck <- err }()
	<-begun // the server reads nothing
	go func() {
		server.KeyUpdate(true)
		server.Write([]byte("data"))
	}()
	buf := make([]byte, 4)
	if _, err := io.ReadFull(client, buf); err != nil || string(buf) != "data" {
		t.Fatalf("%q, %v", buf, err)
	}
	// The answer that waited goes out in its place: the server reads all, under both keys.
	got, want := 0, 1<<20
	for got < want {
		n, err := server.Read(make([]byte, 100000))
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	if err := <-stuck; err != nil {
		t.Fatal(err)
	}
	go client.Write([]byte("after"))
	after := make([]byte, 5)
	if _, err := io.ReadFull(server, after); err != nil || string(after) != "after" {
		t.Fatalf("%q, %v", after, err)
	}
}

func TestCancelHandshake(t *testing.T) {
	p := ossltest.NewContexts(t, nil)
	for _, side := range []string{"client", "server"} {
		a, silent := tlstest.Loopback()
		defer silent.Close() // and so not collected, which would close it before its time
		ctx, cancel := context.WithCancel(t.Context())
		c := p.Client.Client(a, "")
		if side == "server" {
			c = p.Server.Server(a)
		}
		time.AfterFunc(10*time.Millisecond, cancel)
		if err := c.HandshakeContext(ctx); err != context.Canceled {
			t.Errorf("%s: got %v", side, err)
		}
		if err := c.Handshake(); err == nil {
			t.Errorf("%s: a later handshake succeeds", side)
		}
		if !c.Freed() {
			t.Errorf("%s: C memory is kept", side)
		}
	}
}

func TestAfterClose(t *testing.T) {
	client, server := ossltest.Connected(t, tlstest.Loopback, nil)
	state := client.ConnectionState()
	if material, err := state.ExportKeyingMaterial("label", nil, 16); err != nil || len(material) != 16 {
		t.Errorf("before Close: %x, %v", material, err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read: %v", err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write: %v", err)
	}
	if err := client.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	if _, err := client.ExportKeyingMaterial("label", nil, 16); !errors.Is(err, net.ErrClosed) {
		t.Errorf("ExportKeyingMaterial: %v", err)
	}
	if _, err := state.ExportKeyingMaterial("label", nil, 16); !errors.Is(err, net.ErrClosed) {
		t.Errorf("ConnectionState.ExportKeyingMaterial: %v", err)
	}
	if got := client.ConnectionState(); !got.HandshakeComplete || got.Version != state.Version {
		t.Error("the state is gone")
	}
	if n, err := server.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the peer reads %d, %v", n, err)
	}
}

// TestDroppedConnectionsAreFreed: a connection that nobody closed gives its C memory back when it is collected, handshake done or
// not.
func TestDroppedConnectionsAreFreed(t *testing.T) {
	p := ossltest.NewContexts(t, nil)
	before := libssl.Crossings()
	const dropped = 20
	func() {
		for i := range dropped {
			a, b := tlstest.Buffered()
			client, server := p.Client.Client(a, ""), p.Server.Server(b)
			if i%2 == 0 {
				go server.Handshake()
			} else {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				go server.HandshakeContext(ctx)
				client.SetReadDeadline(time.Now().Add(time.Millisecond))
			}
			client.Handshake()
		}
	}()
	// A connection's crossings are counted when it is freed: at least four for each client.
	for limit := time.Now().Add(tlstest.Patience); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		runtime.GC()
		if libssl.Crossings() >= before+dropped/2*4 {
			return
		}
	}
	t.Error("connections that were dropped are not freed")
}

func TestConfigErrorsComeFromTheHandshake(t *testing.T) {
	a, b := tlstest.Buffered()
	bad := &tls.Config{MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}
	for name, c := range map[string]*ossl.Conn{"client": ossl.Client(a, bad), "server": ossl.Server(b, bad)} {
		var e *ossl.ConfigError
		if err := c.Handshake(); !errors.As(err, &e) || e.Field != "MinVersion" {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.As(err, &e) {
			t.Errorf("%s: Read: %v", name, err)
		}
		c.Close()
	}
	if _, err := ossl.Listen("tcp", "127.0.0.1:0", bad); err == nil {
		t.Error("Listen accepts it")
	}
	if _, err := ossl.Listen("tcp", "127.0.0.1:0", &tls.Config{}); err == nil {
		t.Error("Listen without a certificate")
	}
}

// TestConfigIsCompiledOnce: the drop-in functions remember a configuration, and forget it with its last use.
func TestConfigIsCompiledOnce(t *testing.T) {
	config := tlstest.ServerConfig()
	key := weak.Make(config)
	for range 10 {
		a, _ := tlstest.Buffered()
		ossl.Server(a, config)
	}
	if n := ossl.CompiledFor(key); n != 1 {
		t.Errorf("%d entries for one configuration", n)
	}
	runtime.KeepAlive(config)
	config = nil
	for limit := time.Now().Add(tlstest.Patience); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		runtime.GC()
		if ossl.CompiledFor(key) == 0 {
			return
		}
	}
	t.Error("a configuration that is gone is remembered")
}

// TestGetConfigForClient goes through another Context: its certificate, its protocols, its verification.
func TestGetConfigForClient(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		chosen := tlstest.ServerConfig(func(c *tls.Config) {
			c.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.RSA2048)}
			c.NextProtos = []string{"chosen"}
			c.ClientAuth = tls.RequireAndVerifyClientCert
			c.ClientCAs = tlstest.CA().Pool()
			c.MaxVersion = version
		})
		client, server := ossltest.Connected(t, tlstest.Loopback, func(c, s *tls.Config) {
			c.NextProtos = []string{"chosen"}
			c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			s.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				if hello.ServerName != tlstest.ServerName || hello.Conn == nil || hello.Context() == nil {
					t.Errorf("hello: %+v", hello)
				}
				return chosen, nil
			}
		})
		if s := client.ConnectionState(); s.Version != version || s.NegotiatedProtocol != "chosen" ||
			s.PeerCertificates[0].PublicKeyAlgorithm != x509.RSA {
			t.Errorf("client: %+v", s)
		}
		if s := server.ConnectionState(); len(s.PeerCertificates) == 0 || len(s.VerifiedChains) == 0 {
			t.Errorf("server: %+v", s)
		}
	}
}

// TestGetClientCertificateContext: the info's Context method works.
func TestGetClientCertificateContext(t *testing.T) {
	type key struct{}
	p := ossltest.NewContexts(t, func(c, s *tls.Config) {
		s.ClientAuth = tls.RequireAnyClientCert
		c.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if info.Context().Value(key{}) != "value" {
				t.Error("not the handshake's context")
			}
			cert := tlstest.ClientCert(tlstest.Ed25519)
			return &cert, info.SupportsCertificate(&cert)
		}
	})
	a, b := tlstest.Buffered()
	go p.Server.Server(b).Handshake()
	if err := p.Client.Client(a, "").HandshakeContext(context.WithValue(t.Context(), key{}, "value")); err != nil {
		t.Fatal(err)
	}
}

// TestPanicInCallback: a callback's panic reaches the goroutine of the handshake, as it does in crypto/tls, wherever libssl
// stood.
func TestPanicInCallback(t *testing.T) {
	boom := func() { panic("boom") }
	for name, edit := range map[string]func(c, s *tls.Config){
		"client VerifyConnection": func(c, _ *tls.Config) {
			c.VerifyConnection = func(tls.ConnectionState) error { boom(); return nil }
		},
		"server VerifyConnection": func(_, s *tls.Config) {
			s.VerifyConnection = func(tls.ConnectionState) error { boom(); return nil }
		},
		"server VerifyPeerCertificate": func(c, s *tls.Config) {
			s.ClientAuth = tls.RequireAnyClientCert
			c.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			s.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { boom(); return nil }
		},
		"server GetCertificate": func(_, s *tls.Config) {
			s.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { boom(); return nil, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := ossltest.NewContexts(t, edit)
			a, b := tlstest.Buffered()
			panics := make(chan any, 2)
			run := func(c *ossl.Conn) {
				defer func() { panics <- recover(); c.Close() }()
				if err := c.Handshake(); err == nil {
					_, err = c.Read(make([]byte, 1))
					if err == nil {
						t.Error("the handshake succeeds")
					}
				}
			}
			go run(p.Client.Client(a, ""))
			go run(p.Server.Server(b))
			if x, y := <-panics, <-panics; x != "boom" && y != "boom" {
				t.Errorf("panics: %v, %v", x, y)
			}
		})
	}
}
