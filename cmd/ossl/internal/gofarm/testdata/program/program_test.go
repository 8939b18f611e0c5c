// Package program tests crypto/tls as a program sees it. Every test passes with Go's crypto/tls. With that
// of "ossl go" (ENGINE=ossl), the tests also check which engine has the connections.
package program

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	roots  = x509.NewCertPool()
	caKey  = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	caCert = issue(nil, caKey)
	good   = certificate(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
	weak   = certificate(must(rsa.GenerateKey(rand.Reader, 1024))) // below OpenSSL's security level 2
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// issue returns a certificate: an authority's if by is nil.
func issue(by *x509.Certificate, key crypto.Signer) *x509.Certificate {
	t := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	if by == nil {
		by, t.IsCA, t.BasicConstraintsValid, t.KeyUsage = t, true, true, x509.KeyUsageCertSign
	}
	c := must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, t, by, key.Public(), caKey))))
	if c.IsCA {
		roots.AddCert(c)
	}
	return c
}

func certificate(key crypto.Signer) tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{issue(caCert, key).Raw}, PrivateKey: key}
}

func serverConfig() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{good}} }
func clientConfig() *tls.Config { return &tls.Config{RootCAs: roots, ServerName: "localhost"} }

// pair returns the ends of a connection.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	for _, c := range []net.Conn{a, b} {
		c.SetDeadline(time.Now().Add(time.Minute))
	}
	return a, b
}

// engine returns the engine of a connection that was used: "ossl" or "crypto/tls".
func engine(c *tls.Conn) string {
	part := reflect.ValueOf(c).Elem().FieldByName("ossl")
	if part.IsValid() && part.FieldByName("state").FieldByName("v").Uint() == 2 {
		return "ossl"
	}
	return "crypto/tls"
}

// wantEngine fails the test if c has another engine, and ossl can be had.
func wantEngine(t *testing.T, c *tls.Conn, want string) {
	t.Helper()
	if got := engine(c); os.Getenv("ENGINE") == "ossl" && got != want {
		t.Errorf("the engine is %s, want %s", got, want)
	}
}

// talk exchanges a line in both directions, and returns the errors of both ends.
func talk(client, server *tls.Conn) (clientErr, serverErr error) {
	done := make(chan error, 1)
	go func() {
		b := make([]byte, 5)
		_, err := io.ReadFull(server, b)
		if err == nil {
			_, err = server.Write(b)
		}
		done <- err
	}()
	b := make([]byte, 5)
	_, clientErr = client.Write([]byte("hello"))
	if clientErr == nil {
		_, clientErr = io.ReadFull(client, b)
	}
	return clientErr, <-done
}

func visit(t *testing.T, clientConfig, serverConfig *tls.Config) (client, server *tls.Conn) {
	t.Helper()
	a, b := pair(t)
	client, server = tls.Client(a, clientConfig), tls.Server(b, serverConfig)
	if clientErr, serverErr := talk(client, server); clientErr != nil || serverErr != nil {
		t.Fatalf("client: %v; server: %v", clientErr, serverErr)
	}
	return client, server
}

func TestEngines(t *testing.T) {
	client, server := visit(t, clientConfig(), serverConfig())
	wantEngine(t, client, "ossl")
	wantEngine(t, server, "ossl")
	if name := fmt.Sprintf("%T", client); name != "*tls.Conn" {
		t.Errorf("a connection is a %s", name)
	}
	for _, c := range []*tls.Conn{client, server} {
		if err := c.CloseWrite(); err != nil {
			t.Error(err)
		}
		if s := c.ConnectionState(); s.Version != tls.VersionTLS13 || !s.HandshakeComplete {
			t.Errorf("%+v", s)
		}
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after CloseWrite: %v", err)
	}
	if err := client.VerifyHostname("localhost"); err != nil {
		t.Error(err)
	}
	one, two := client.ConnectionState(), server.ConnectionState()
	k1, err1 := one.ExportKeyingMaterial("label", nil, 16)
	k2, err2 := two.ExportKeyingMaterial("label", nil, 16)
	if string(k1) != string(k2) || err1 != nil || err2 != nil {
		t.Errorf("keying material: %x, %v; %x, %v", k1, err1, k2, err2)
	}
}

// TestPrefer: what OpenSSL can't do is crypto/tls's.
func TestPrefer(t *testing.T) {
	old := serverConfig()
	old.MinVersion = tls.VersionTLS10
	client, server := visit(t, clientConfig(), old)
	wantEngine(t, client, "ossl")
	wantEngine(t, server, "crypto/tls")

	renegotiates := clientConfig()
	renegotiates.Renegotiation = tls.RenegotiateOnceAsClient
	client, server = visit(t, renegotiates, serverConfig())
	wantEngine(t, client, "crypto/tls")
	wantEngine(t, server, "ossl")
}

// TestRequire: what OpenSSL can't do is refused, with OSSL_MODE=require.
func TestRequire(t *testing.T) {
	if os.Getenv("OSSL_MODE") != "require" {
		t.Skip("only with OSSL_MODE=require")
	}
	old := serverConfig()
	old.MinVersion = tls.VersionTLS10
	renegotiates := clientConfig()
	renegotiates.Renegotiation = tls.RenegotiateOnceAsClient
	chosen := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return old, nil }}
	for name, c := range map[string]struct {
		client, server *tls.Config
		wantClient     string
		wantServer     string
	}{
		"server":             {clientConfig(), old, "", "MinVersion: versions below TLS 1.2 are refused"},
		"client":             {renegotiates, serverConfig(), "Renegotiation: ", ""},
		"GetConfigForClient": {clientConfig(), chosen, "remote error: tls: internal error", "MinVersion: "},
	} {
		a, b := pair(t)
		client, server := tls.Client(a, c.client), tls.Server(b, c.server)
		ended := make(chan error, 1)
		go func() {
			err := server.Handshake()
			server.Close()
			ended <- err
		}()
		clientErr := client.Handshake()
		client.Close()
		serverErr := <-ended
		if clientErr == nil || serverErr == nil || !strings.Contains(clientErr.Error(), c.wantClient) ||
			!strings.Contains(serverErr.Error(), c.wantServer) {
			t.Errorf("%s: client: %v; server: %v", name, clientErr, serverErr)
		}
	}
}

// TestHandOver: a callback returns what OpenSSL can't do.
func TestHandOver(t *testing.T) {
	old := serverConfig()
	old.MinVersion = tls.VersionTLS10
	old.NextProtos = []string{"old"}
	for _, first := range []string{"Handshake", "Read", "Write"} {
		t.Run(first, func(t *testing.T) {
			var calls atomic.Int32
			config := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				calls.Add(1)
				if hello.ServerName != "localhost" || hello.Conn == nil || hello.Context() == nil {
					return nil, fmt.Errorf("the hello is %+v", hello)
				}
				return old, nil
			}}
			asks := clientConfig()
			asks.NextProtos = []string{"old"}
			a, b := pair(t)
			client, server := tls.Client(a, asks), tls.Server(b, config)
			done := make(chan error, 1)
			go func() {
				var err error
				switch first {
				case "Handshake":
					err = server.HandshakeContext(t.Context())
				case "Read":
					_, err = io.ReadFull(server, make([]byte, 5))
				}
				if err == nil {
					_, err = server.Write([]byte("hello"))
				}
				done <- err
			}()
			if first == "Read" {
				if _, err := client.Write([]byte("hello")); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.ReadFull(client, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			wantEngine(t, client, "ossl")
			wantEngine(t, server, "crypto/tls")
			if s := server.ConnectionState(); s.NegotiatedProtocol != "old" || !s.HandshakeComplete {
				t.Errorf("%+v", s)
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("%d calls", n)
			}
			if server.NetConn() != b {
				t.Error("NetConn returns another connection")
			}
		})
	}
}

// TestHandOverAtOnce: several methods are called at a time.
func TestHandOverAtOnce(t *testing.T) {
	old := serverConfig()
	old.MinVersion = tls.VersionTLS10
	config := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return old, nil }}
	for range 20 {
		a, b := pair(t)
		client, server := tls.Client(a, clientConfig()), tls.Server(b, config)
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := io.ReadFull(server, make([]byte, 5)); err != nil {
				t.Errorf("Read: %v", err)
			}
		})
		wait.Go(func() {
			if _, err := server.Write([]byte("hello")); err != nil {
				t.Errorf("Write: %v", err)
			}
		})
		wait.Go(func() {
			if err := server.Handshake(); err != nil {
				t.Errorf("Handshake: %v", err)
			}
			_ = server.ConnectionState()
			_ = server.SetDeadline(time.Now().Add(time.Minute))
		})
		if _, err := client.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		wantEngine(t, server, "crypto/tls")
	}
}

// TestHandOverResumes: the sessions of a server whose connections are handed over can be resumed.
func TestHandOverResumes(t *testing.T) {
	old := serverConfig()
	old.MinVersion = tls.VersionTLS10
	config := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return old, nil }}
	asks := clientConfig()
	asks.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for i := range 3 {
		client, server := visit(t, asks, config)
		if resumed := client.ConnectionState().DidResume; resumed != (i > 0) {
			t.Errorf("connection %d: resumed %v", i, resumed)
		}
		wantEngine(t, server, "crypto/tls")
	}
}

// TestSharedCache: clients of both engines have one cache of sessions.
func TestSharedCache(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		ours, theirs := clientConfig(), clientConfig()
		ours.ClientSessionCache = tls.NewLRUClientSessionCache(10)
		ours.MaxVersion = version
		theirs.ClientSessionCache = ours.ClientSessionCache
		theirs.MaxVersion = version
		theirs.Renegotiation = tls.RenegotiateOnceAsClient
		server := serverConfig()
		for range 3 {
			client, _ := visit(t, ours, server)
			wantEngine(t, client, "ossl")
			client, _ = visit(t, theirs, server)
			wantEngine(t, client, "crypto/tls")
		}
	}
}

// TestGetCertificate: a certificate that OpenSSL refuses is crypto/tls's to judge.
func TestGetCertificate(t *testing.T) {
	var calls atomic.Int32
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		calls.Add(1)
		return &weak, nil
	}}
	asks := clientConfig()
	asks.InsecureSkipVerify = true // OpenSSL's client refuses it too
	asks.Renegotiation = tls.RenegotiateOnceAsClient
	client, server := visit(t, asks, config)
	wantEngine(t, client, "crypto/tls")
	wantEngine(t, server, "crypto/tls")
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestBeforeUse: deadlines, Close and changes of the configuration have an effect before the first use too.
func TestBeforeUse(t *testing.T) {
	a, _ := pair(t)
	client := tls.Client(a, clientConfig())
	if err := client.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var network net.Error
	if err := client.Handshake(); !errors.As(err, &network) || !network.Timeout() {
		t.Errorf("with a read deadline: %v", err)
	}

	a, _ = pair(t)
	client = tls.Client(a, clientConfig())
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := client.Handshake(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}

	a, b := pair(t)
	late := &tls.Config{RootCAs: roots}
	client = tls.Client(a, late)
	late.ServerName = "localhost" // no program should, and crypto/tls honours it
	server := tls.Server(b, serverConfig())
	if clientErr, serverErr := talk(client, server); clientErr != nil || serverErr != nil {
		t.Errorf("client: %v; server: %v", clientErr, serverErr)
	}
	if err := tls.Client(a, clientConfig()).CloseWrite(); err == nil {
		t.Error("CloseWrite before the handshake succeeds")
	}

	a, _ = pair(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := tls.Client(a, clientConfig()).HandshakeContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context: %v", err)
	}
}

// TestTruncation: an end without close_notify is io.EOF to programs that were written for crypto/tls.
func TestTruncation(t *testing.T) {
	client, server := visit(t, clientConfig(), serverConfig())
	server.NetConn().Close()
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("Read: %v", err)
	}
}

// TestDial: tls.Dial and a Listener.
func TestDial(t *testing.T) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", serverConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	client, err := (&tls.Dialer{Config: clientConfig()}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	wantEngine(t, client.(*tls.Conn), "ossl")
}

// TestQUIC: connections of QUIC are crypto/tls's.
func TestQUIC(t *testing.T) {
	asks, serves := clientConfig(), serverConfig()
	asks.MinVersion, serves.MinVersion = tls.VersionTLS13, tls.VersionTLS13
	client := tls.QUICClient(&tls.QUICConfig{TLSConfig: asks})
	server := tls.QUICServer(&tls.QUICConfig{TLSConfig: serves})
	client.SetTransportParameters(nil)
	server.SetTransportParameters(nil)
	ends := []*tls.QUICConn{client, server}
	for _, q := range ends {
		if err := q.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer q.Close()
	}
	done := 0
	for range 20 {
		for i, q := range ends {
			for e := q.NextEvent(); e.Kind != tls.QUICNoEvent; e = q.NextEvent() {
				switch e.Kind {
				case tls.QUICWriteData:
					if err := ends[1-i].HandleData(e.Level, e.Data); err != nil {
						t.Fatal(err)
					}
				case tls.QUICHandshakeDone:
					done++
				}
			}
		}
	}
	if done != 2 {
		t.Errorf("%d handshakes are done", done)
	}
}
