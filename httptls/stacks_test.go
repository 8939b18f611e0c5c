package httptls_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/httptls"
)

// The tests compare two stacks: net/http on crypto/tls, and httptls.

type server interface {
	ServeTLS(l net.Listener, certFile, keyFile string) error
	Shutdown(context.Context) error
	Close() error
}

type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

type stack struct {
	name      string
	server    func(*http.Server) server
	transport func(*http.Transport) (transport, error)
}

var (
	netHTTP = &stack{
		name:      "nethttp",
		server:    func(s *http.Server) server { return s },
		transport: func(t *http.Transport) (transport, error) { return t, nil },
	}
	openSSL = &stack{
		name:   "ossl",
		server: func(s *http.Server) server { return &httptls.Server{Server: s} },
		transport: func(t *http.Transport) (transport, error) {
			return httptls.NewTransport(t)
		},
	}
	stacks = []*stack{netHTTP, openSSL}
)

// authority signs the tests' certificates.
var authority = sync.OnceValue(func() *tls.Certificate {
	return certify(nil, ecKey(), &x509.Certificate{
		Subject: pkix.Name{CommonName: "httptls tests"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
})

var serial sync.Mutex
var lastSerial int64

func certify(parent *tls.Certificate, key crypto.Signer, template *x509.Certificate) *tls.Certificate {
	serial.Lock()
	lastSerial++
	template.SerialNumber = big.NewInt(lastSerial)
	serial.Unlock()
	if template.NotAfter.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	issuer, signer := template, key
	if parent != nil {
		issuer, signer = parent.Leaf, parent.PrivateKey.(crypto.Signer)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func ecKey() crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func rsaKey() crypto.Signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// leaf returns a certificate for names, "localhost" and 127.0.0.1.
func leaf(key crypto.Signer, names ...string) *tls.Certificate {
	return certify(authority(), key, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "httptls test server"},
		DNSNames:    append([]string{"localhost"}, names...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

var serverCert = sync.OnceValue(func() *tls.Certificate { return leaf(ecKey(), "example.org") })

// clientCertificate is for clients.
var clientCertificate = sync.OnceValue(func() *tls.Certificate {
	return certify(authority(), ecKey(), &x509.Certificate{
		Subject: pkix.Name{CommonName: "httptls test client"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
})

func pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(authority().Leaf)
	return p
}

// clientConfig trusts the tests' authority.
func clientConfig() *tls.Config {
	return &tls.Config{RootCAs: pool(), CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}}
}

// serverConfig makes the stacks comparable: ossl doesn't resume sessions.
func serverConfig() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{*serverCert()}, SessionTicketsDisabled: true}
}

// writePair writes a certificate and its key as PEM files.
func writePair(t testing.TB, cert *tls.Certificate) (certFile, keyFile string) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePairTo(t, cert, certFile, keyFile)
	return certFile, keyFile
}

func writePairTo(t testing.TB, cert *tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if certFile != "" {
		writeFile(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}))
	}
	if keyFile != "" {
		writeFile(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	}
}

func writeFile(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A running server.
type running struct {
	server
	http *http.Server
	addr string
	log  *lockedBuffer
	done chan error // the result of Serve
}

func (r *running) url(path string) string { return "https://" + r.addr + path }

// start serves hs on a port of 127.0.0.1. A nil TLSConfig and ErrorLog are filled in.
func (s *stack) start(t testing.TB, hs *http.Server) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return s.startOn(t, l, hs)
}

func (s *stack) startOn(t testing.TB, l net.Listener, hs *http.Server) *running {
	t.Helper()
	r := &running{http: hs, addr: l.Addr().String(), log: new(lockedBuffer), done: make(chan error, 1)}
	if hs.TLSConfig == nil {
		hs.TLSConfig = serverConfig()
	}
	if hs.ErrorLog == nil {
		hs.ErrorLog = log.New(r.log, "", 0)
	}
	r.server = s.server(hs)
	go func() { r.done <- r.server.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		_ = r.Close()
		if err := await(t, "Serve to return", r.done); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

// patience bounds tasks that take a moment, or many seconds with ten thousand connections and the
// system's short queues.
const patience = 2 * time.Minute

// await returns the value from ch, and fails the test if that takes too long.
func await[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
		panic("unreachable")
	}
}

// soon returns a context that expires if the test hangs.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// client returns a client with HTTP/2 enabled or not. If base is nil, a new one is used.
func (s *stack) client(t testing.TB, base *http.Transport, http2 bool) *http.Client {
	t.Helper()
	if base == nil {
		base = &http.Transport{}
	}
	if base.TLSClientConfig == nil {
		base.TLSClientConfig = clientConfig()
	}
	base.ForceAttemptHTTP2 = http2
	rt, err := s.transport(base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.CloseIdleConnections)
	return &http.Client{Transport: rt}
}

// A lockedBuffer is a buffer for the logs of servers.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A pairing is the client's stack, the server's, and a protocol.
type pairing struct {
	client, server *stack
	http2          bool
}

// eachPairing runs f for all pairings of stacks and both protocols.
func eachPairing(t *testing.T, f func(t *testing.T, p pairing)) {
	for _, http2 := range []bool{false, true} {
		for _, client := range stacks {
			for _, server := range stacks {
				name := "h1"
				if http2 {
					name = "h2"
				}
				t.Run(name+"/client="+client.name+"/server="+server.name, func(t *testing.T) {
					f(t, pairing{client, server, http2})
				})
			}
		}
	}
}

// compare runs f for all pairings, and requires from each the result that net/http gives on both
// sides.
func compare(t *testing.T, f func(t *testing.T, p pairing) string) {
	want := make(map[bool]string)
	eachPairing(t, func(t *testing.T, p pairing) {
		got := f(t, p)
		if p.client == netHTTP && p.server == netHTTP {
			want[p.http2] = got
			return
		}
		if got != want[p.http2] {
			t.Errorf("got:\n%s\nwith net/http on both sides:\n%s", got, want[p.http2])
		}
	})
}

var discardLog = log.New(io.Discard, "", 0)

// compareClients is compare for cases in which the server belongs to neither stack.
func compareClients(t *testing.T, f func(t *testing.T, p pairing) string) {
	for _, http2 := range []bool{false, true} {
		want := f(t, pairing{netHTTP, nil, http2})
		if got := f(t, pairing{openSSL, nil, http2}); got != want {
			t.Errorf("HTTP/2 %v: got:\n%s\nwith net/http:\n%s", http2, got, want)
		}
	}
}

// weakKey is an RSA key that OpenSSL's security level 2 refuses.
func weakKey(t *testing.T) crypto.Signer {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
