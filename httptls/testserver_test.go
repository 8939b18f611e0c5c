package httptls_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// recorderT is a test that a TestServer may fail.
type recorderT struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorderT) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorderT) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
func (r *recorderT) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// A tester is an httptest.Server or a TestServer, both started.
type tester interface {
	Client() *http.Client
	Certificate() *x509.Certificate
	Close()
	CloseClientConnections()
}

// testers starts both servers with the same handler.
func testers(t *testing.T, handler http.HandlerFunc, http2 bool, config *tls.Config, f func(t *testing.T, s tester, url string)) {
	t.Run("httptest", func(t *testing.T) {
		s := httptest.NewUnstartedServer(handler)
		s.EnableHTTP2, s.TLS, s.Config.ErrorLog = http2, config, discardLog
		s.StartTLS()
		defer s.Close()
		f(t, s, s.URL)
	})
	t.Run("httptls", func(t *testing.T) {
		s := httptls.NewTestServer(t, handler)
		s.EnableHTTP2, s.TLS, s.Config.ErrorLog = http2, config, discardLog
		s.StartTLS()
		f(t, s, s.URL)
	})
}

func TestTestServer(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		proto := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]
		testers(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto, r.TLS.HandshakeComplete) }, http2, nil,
			func(t *testing.T, s tester, url string) {
				_, port, _ := strings.Cut(strings.TrimPrefix(url, "https://"), ":")
				for _, url := range []string{url, "https://example.com", "https://www.example.com/x"} {
					if got := fetch(t, s.Client(), url); got != proto+"true" {
						t.Errorf("%s: %q", url, got)
					}
				}
				// Another client, with crypto/tls, that trusts Certificate.
				roots := x509.NewCertPool()
				roots.AddCert(s.Certificate())
				other := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: http2}}
				if got := fetch(t, other, "https://127.0.0.1:"+port); got != proto+"true" {
					t.Errorf("with Certificate: %q", got)
				}
				other.CloseIdleConnections()
				if resp, err := new(http.Client).Get(url); err == nil {
					_ = resp.Body.Close()
					t.Error("a client that doesn't trust the certificate gets an answer")
				}
				s.Close()
				if resp, err := s.Client().Get(url); err == nil {
					_ = resp.Body.Close()
					t.Error("an answer after Close")
				}
			})
	}
}

// A running server takes new ticket keys, and one that http.Server's ServeTLS has begun doesn't, since that copies
// its configuration.
func TestServersTakeChanges(t *testing.T) {
	config := func() *tls.Config {
		config := &tls.Config{}
		config.SetSessionTicketKeys([][32]byte{{1}})
		return config
	}
	resumed := func(t *testing.T, addr string, client *tls.Config) bool {
		conn, err := tls.Dial("tcp", addr, client)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		_, _ = io.ReadAll(conn)
		return conn.ConnectionState().DidResume
	}
	check := func(t *testing.T, addr string, config *tls.Config, takes bool) {
		client := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
		if resumed(t, addr, client) || !resumed(t, addr, client) {
			t.Fatal("the second connection must resume the session of the first")
		}
		config.SetSessionTicketKeys([][32]byte{{2}})
		if resumed(t, addr, client) == takes {
			t.Errorf("the server takes new keys: %v", !takes)
		}
	}
	handler := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }
	testers(t, handler, false, config(), func(t *testing.T, s tester, url string) {
		var used *tls.Config
		switch s := s.(type) {
		case *httptest.Server:
			used = s.TLS
		case *httptls.TestServer:
			used = s.TLS
		}
		check(t, strings.TrimPrefix(url, "https://"), used, true)
	})
	for _, name := range []string{"ServeTLS of net/http", "ServeTLS of httptls"} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			config := config()
			config.Certificates = serverConfig().Certificates
			server := &httptls.Server{Server: &http.Server{Handler: http.HandlerFunc(handler), TLSConfig: config}}
			defer server.Close()
			if strings.HasSuffix(name, "net/http") {
				go func() { _ = server.Server.ServeTLS(l, "", "") }()
			} else {
				go func() { _ = server.ServeTLS(l, "", "") }()
			}
			check(t, l.Addr().String(), config, false)
		})
	}
}

// Close returns when the outstanding requests have completed, and not before.
func TestTestServerCloseWaits(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		begun, answer := make(chan struct{}), make(chan struct{})
		testers(t, func(w http.ResponseWriter, r *http.Request) {
			begun <- struct{}{}
			<-answer
			_, _ = io.WriteString(w, "late")
		}, http2, nil, func(t *testing.T, s tester, url string) {
			got := make(chan string, 1)
			go func() {
				resp, err := s.Client().Get(url)
				if err != nil {
					got <- err.Error()
					return
				}
				body, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				got <- string(body)
			}()
			await(t, "the request", begun)
			closed := make(chan struct{})
			go func() { s.Close(); close(closed) }()
			for { // until Close has begun
				resp, err := http.Get("http" + strings.TrimPrefix(url, "https")) // answered 400 until the listener is closed
				if err != nil {
					break
				}
				_ = resp.Body.Close()
			}
			select {
			case <-closed:
				t.Error("Close has returned before the request's end")
			default:
			}
			answer <- struct{}{}
			// httptest cuts the last answer of an HTTP/2 connection off if Close waits for it.
			_, ours := s.(*httptls.TestServer)
			if got := await(t, "the answer", got); got != "late" && (ours || !http2) {
				t.Errorf("%q", got)
			}
			await(t, "Close", closed)
			s.Close() // again
		})
	}
}

func TestTestServerCloseClientConnections(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		begun := make(chan struct{})
		testers(t, func(w http.ResponseWriter, r *http.Request) {
			begun <- struct{}{}
			<-r.Context().Done()
		}, http2, nil, func(t *testing.T, s tester, url string) {
			failed := make(chan error, 1)
			go func() {
				resp, err := s.Client().Get(url)
				if err == nil {
					_ = resp.Body.Close()
				}
				failed <- err
			}()
			await(t, "the request", begun)
			s.CloseClientConnections()
			if err := await(t, "the client", failed); err == nil {
				t.Error("the client got an answer")
			}
		})
	}
}

// A server with a configuration and a certificate of its own, which asks clients for theirs.
func TestTestServerConfiguration(t *testing.T) {
	config := mutualConfig()
	before := config.Clone()
	testers(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, len(r.TLS.PeerCertificates)) }, true, config,
		func(t *testing.T, s tester, url string) {
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: mutualConfig(), ForceAttemptHTTP2: true}}
			defer client.CloseIdleConnections()
			if got := fetch(t, client, url); got != "1" {
				t.Errorf("%q", got)
			}
			if !s.Certificate().Equal(config.Certificates[0].Leaf) {
				t.Error("Certificate is another one")
			}
			if resp, err := s.Client().Get(url); err == nil { // it trusts the server and has no certificate
				_ = resp.Body.Close()
				t.Error("a client without a certificate gets an answer")
			}
			if len(config.NextProtos) != len(before.NextProtos) {
				t.Error("the configuration was changed")
			}
		})
}

// The test's methods are called as Go 1.27's httptest.NewTestServer calls them.
func TestTestServerFailsTest(t *testing.T) {
	r := &recorderT{TB: t}
	fails := map[string]http.Handler{
		"/panic": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a handler's mistake") }),
		"/abort": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
	}
	for want, path := range []string{"/abort", "/panic"} {
		s := httptls.NewTestServer(r, fails[path])
		resp, err := s.Client().Get(s.URL + path)
		if err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s: %s", path, resp.Status)
		}
		s.Close()
		if len(r.failures) != want {
			t.Errorf("%s: %d failures: %v", path, len(r.failures), r.failures)
		}
	}
	if len(r.failures) == 1 && !strings.Contains(r.failures[0], "a handler's mistake") {
		t.Error(r.failures)
	}

	s := httptls.NewTestServer(r, nil)
	resp, err := s.Client().Get("https://example.com")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("without a handler: %s", resp.Status)
	}
	mustPanic := func(name string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s doesn't panic", name)
			}
		}()
		f()
	}
	mustPanic("a second start", s.StartTLS)
	for _, cleanup := range r.cleanups {
		cleanup()
	}
	if resp, err := s.Client().Get(s.URL); err == nil {
		_ = resp.Body.Close()
		t.Error("an answer after the test's end")
	}
	closed := httptls.NewTestServer(r, nil)
	closed.Close()
	mustPanic("a start after Close", closed.StartTLS)

	// A configuration that can't be honoured stops the test.
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := httptls.NewTestServer(r, nil)
		s.Options = []ossl.Option{ossl.WithSecurityLevel(-1)}
		s.StartTLS()
		t.Error("StartTLS returns")
	}()
	await(t, "the failing start", done)
	if len(r.failures) != 2 || !strings.Contains(r.failures[1], "WithSecurityLevel") {
		t.Errorf("failures: %v", r.failures)
	}
}
