package httptls

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/ossl-go/ossl"
)

// A TestServer is an HTTPS server on OpenSSL for tests. It listens on a port of the loopback
// interface. Its fields and methods mean the same as in [net/http/httptest.Server].
type TestServer struct {
	// URL is the server's base URL, https://address:port without a slash at its end. The first call
	// of Client or StartTLS sets URL and Listener.
	URL      string
	Listener net.Listener

	// EnableHTTP2 turns HTTP/2 on, besides HTTP/1.1. Set it, and the fields below, before the first
	// call of Client or StartTLS.
	EnableHTTP2 bool

	// TLS is the server's configuration. If it has no certificate, the server uses one that the
	// process makes, for 127.0.0.1, ::1, localhost, example.com and the subdomains of example.com.
	// A copy with the certificate and the protocols replaces TLS when the server starts.
	TLS *tls.Config

	Options []ossl.Option // for the server's Context, besides TLS
	Config  *http.Server

	t           TestingT
	start       sync.Once
	server      *Server // nil before the start
	client      *http.Client
	certificate *x509.Certificate
	tasks       sync.WaitGroup // the call of Serve, and one for each of conns

	mu      sync.Mutex
	started bool                        // guarded by mu
	closed  bool                        // guarded by mu
	conns   map[net.Conn]http.ConnState // guarded by mu
}

// TestingT has the methods of [testing.TB] that a TestServer uses. Programs that import httptls
// should not have to link package testing.
type TestingT interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// NewTestServer returns a server for the test t, as [net/http/httptest.NewTestServer] does in Go
// 1.27. The first call of Client or StartTLS starts it; until then it can be configured. It is
// closed when the test is done. If the handler panics, except with [http.ErrAbortHandler], the test
// fails. If handler is nil, all responses have status 500.
func NewTestServer(t TestingT, handler http.Handler) *TestServer {
	s := &TestServer{t: t, Config: &http.Server{Handler: testHandler{t, handler}}}
	t.Cleanup(s.Close)
	return s
}

type testHandler struct {
	t       TestingT
	handler http.Handler
}

func (h testHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	defer func() {
		if err := recover(); err != nil {
			if err != http.ErrAbortHandler {
				stack := make([]byte, 64<<10)
				stack = stack[:runtime.Stack(stack, false)]
				h.t.Errorf("httptls: the handler of a TestServer panicked: %v\n%s", err, stack)
			}
			panic(http.ErrAbortHandler) // net/http has nothing to log
		}
	}()
	if h.handler == nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	h.handler.ServeHTTP(w, req)
}

// Client returns a client whose TLS is OpenSSL's, which trusts the server's certificate. Its
// requests for example.com and the subdomains of example.com go to the server. It starts the server
// if that has not been started. [TestServer.Close] closes its idle connections.
func (s *TestServer) Client() *http.Client {
	s.t.Helper()
	s.start.Do(s.serve)
	return s.client
}

// StartTLS starts the server. It fails the test at once if the configuration can't be honoured or
// OpenSSL is not available. It panics if the server has been started.
func (s *TestServer) StartTLS() {
	s.t.Helper()
	s.mu.Lock()
	started := s.started
	s.mu.Unlock()
	if started {
		panic("httptls: the TestServer has been started")
	}
	s.start.Do(s.serve)
}

// Certificate returns the server's certificate, or nil before the server is started.
func (s *TestServer) Certificate() *x509.Certificate { return s.certificate }

// serve starts the server.
func (s *TestServer) serve() {
	s.t.Helper()
	s.mu.Lock()
	closed := s.closed
	s.started = true
	s.mu.Unlock()
	if closed {
		panic("httptls: the TestServer is closed")
	}
	l, err := s.listen()
	if err != nil {
		s.t.Fatalf("httptls: TestServer: %v", err)
	}
	s.Listener = l
	s.URL = "https://" + l.Addr().String()
	s.watch()
	s.server = &Server{Server: s.Config}
	s.tasks.Go(func() { _ = s.server.Serve(l) })
}

// listen makes the listener and the client.
func (s *TestServer) listen() (net.Listener, error) {
	ctx, err := s.compile()
	if err != nil {
		return nil, err
	}
	if err := s.makeClient(ctx.FIPS() != nil); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		if l, err = net.Listen("tcp6", "[::1]:0"); err != nil {
			return nil, err
		}
	}
	if len(s.Options) == 0 {
		return ossl.NewListener(l, s.TLS), nil // which honours later changes to s.TLS, as httptest's does
	}
	return ctx.NewListener(l), nil
}

// compile completes the configuration.
func (s *TestServer) compile() (*ossl.Context, error) {
	config := new(tls.Config)
	if s.TLS != nil {
		config = s.TLS.Clone()
	}
	s.TLS = config
	if config.NextProtos == nil {
		config.NextProtos = []string{"http/1.1"}
		if s.EnableHTTP2 {
			config.NextProtos = []string{"h2", "http/1.1"}
		}
	}
	if len(config.Certificates) == 0 {
		cert, err := testCertificate()
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{cert}
	}
	if chain := config.Certificates[0].Certificate; len(chain) > 0 {
		leaf, err := x509.ParseCertificate(chain[0])
		if err != nil {
			return nil, err
		}
		s.certificate = leaf
	}
	return ossl.NewContext(config, s.Options...)
}

// makeClient makes the client, in FIPS mode if the server is.
func (s *TestServer) makeClient(fips bool) error {
	config, opts := new(tls.Config), []ossl.Option(nil)
	if fips {
		opts = append(opts, ossl.WithFIPS(), ossl.WithRoots(ossl.Roots{Certificates: []*x509.Certificate{s.certificate}}))
	} else {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AddCert(s.certificate)
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "example.com:443" || strings.HasSuffix(addr, ".example.com:443") {
			addr = s.Listener.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	transport, err := NewTransport(&http.Transport{
		TLSClientConfig: config, DialContext: dial, ForceAttemptHTTP2: s.EnableHTTP2,
	}, opts...)
	s.client = &http.Client{Transport: transport}
	return err
}

// testCertificate returns a certificate that is its own authority. Tests may set the clock as they
// like: it is valid from 1970 to 2084, as httptest's is.
var testCertificate = sync.OnceValues(func() (cert tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cert, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{Organization: []string{"httptls tests"}},
		NotBefore:             time.Unix(0, 0),
		NotAfter:              time.Date(2084, 1, 29, 16, 0, 0, 0, time.UTC),
		DNSNames:              []string{"localhost", "example.com", "*.example.com"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
})

// watch makes the http.Server report the states of connections. From these, Close knows the
// connections that have no request.
func (s *TestServer) watch() {
	hook := s.Config.ConnState
	s.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch _, known := s.conns[conn]; state {
		case http.StateNew:
			if s.conns == nil {
				s.conns = make(map[net.Conn]http.ConnState)
			}
			s.tasks.Add(1)
			s.conns[conn] = state
			if s.closed {
				_ = conn.Close()
			}
		case http.StateActive, http.StateIdle:
			if known {
				s.conns[conn] = state
			}
		case http.StateHijacked, http.StateClosed:
			if known {
				delete(s.conns, conn)
				defer s.tasks.Done() // after the hook
			}
		}
		if hook != nil {
			hook(conn, state)
		}
	}
}

// Close shuts the server down. It closes connections that have no request, and blocks until all
// outstanding requests have completed.
func (s *TestServer) Close() {
	s.mu.Lock()
	if !s.closed && s.server != nil {
		// The other connections end after their request: Shutdown waits for the last response of an
		// HTTP/2 connection, which becomes idle before that is sent.
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() { _ = s.server.Shutdown(ctx) }()
		for conn, state := range s.conns {
			if state == http.StateIdle || state == http.StateNew {
				_ = conn.Close()
			}
		}
		// If this takes long, the test's author should learn the reason.
		defer time.AfterFunc(5*time.Second, s.logConns).Stop()
	}
	s.closed = true
	s.mu.Unlock()
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	s.tasks.Wait()
}

func (s *TestServer) logConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list strings.Builder
	for conn, state := range s.conns {
		fmt.Fprintf(&list, "\n\t%v, %v", conn.RemoteAddr(), state)
	}
	log.Printf("httptls: the Close of a TestServer has waited 5 seconds for connections:%s", &list)
}

// CloseClientConnections closes all connections that the server has.
func (s *TestServer) CloseClientConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		_ = conn.Close()
	}
}
