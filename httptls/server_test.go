package httptls_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// states records the states of a server's connections, and signals when one has closed.
type states struct {
	mu    sync.Mutex
	seen  []string
	conns map[net.Conn]int
	over  chan struct{}
}

func newStates() *states {
	return &states{conns: make(map[net.Conn]int), over: make(chan struct{}, 100)}
}

func (s *states) hook(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.conns[conn]; !known {
		s.conns[conn] = len(s.conns)
	}
	s.seen = append(s.seen, fmt.Sprintf("%d:%v", s.conns[conn], state))
	if state == http.StateClosed || state == http.StateHijacked {
		s.over <- struct{}{}
	}
}

func (s *states) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, " ")
}

func TestConnState(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		st := newStates()
		s := p.server.start(t, &http.Server{ConnState: st.hook, Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/hijack" {
					if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
						_ = conn.Close()
						return
					}
				}
				hello(w, r)
			})})
		c := p.client.client(t, nil, p.http2)
		fetch(t, c, s.url("/"))
		fetch(t, c, s.url("/"))
		c.CloseIdleConnections()
		await(t, "a connection to end", st.over)
		if _, err := p.client.client(t, &http.Transport{TLSClientConfig: &tls.Config{}}, p.http2).Get(s.url("/")); err == nil {
			t.Error("the handshake succeeded")
		}
		await(t, "a connection to end", st.over)
		if !p.http2 {
			_, _ = c.Get(s.url("/hijack"))
			await(t, "a connection to end", st.over)
		}
		return st.String()
	})
}

type contextKey string

func TestContexts(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		config := serverConfig()
		cert := config.Certificates[0]
		config.Certificates = nil
		var inHandshake atomic.Value
		config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			inHandshake.Store(fmt.Sprint(hello.Context().Value(contextKey("base")), hello.Context().Value(contextKey("conn"))))
			return &cert, nil
		}
		hs := &http.Server{
			TLSConfig: config,
			BaseContext: func(l net.Listener) context.Context {
				return context.WithValue(context.Background(), contextKey("base"), "base")
			},
			ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
				_, isTLS := conn.(interface{ ConnectionState() tls.ConnectionState })
				return context.WithValue(ctx, contextKey("conn"), fmt.Sprintf("conn tls=%v server=%v", isTLS,
					ctx.Value(http.ServerContextKey) != nil))
			},
		}
		hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Context().Value(contextKey("base")), r.Context().Value(contextKey("conn")),
				r.Context().Value(http.ServerContextKey) == hs, r.Context().Value(http.LocalAddrContextKey).(net.Addr).Network(),
				r.RemoteAddr != "", r.Host != "")
		})
		s := p.server.start(t, hs)
		c := p.client.client(t, nil, p.http2)
		return fetch(t, c, s.url("/")) + fmt.Sprint(inHandshake.Load())
	})
}

var clientAddr = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// A client that speaks HTTP without TLS gets an HTTP error.
func TestPlaintextClient(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		st := newStates()
		s := p.server.start(t, &http.Server{ConnState: st.hook})
		var out strings.Builder
		requests := []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /x HTTP/1.0\r\n\r\n", "garbage of another kind\r\n\r\n"}
		for _, request := range requests {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, request)
			answer, _ := io.ReadAll(conn)
			if strings.HasPrefix(request, "garbage") {
				answer = nil // an alert
			}
			fmt.Fprintf(&out, "%q\n", answer)
			await(t, "a connection to end", st.over)
			_ = conn.Close()
		}
		fmt.Fprintln(&out, clientAddr.ReplaceAllString(s.log.String(), "CLIENT"))
		return out.String() + st.String()
	})
}

// A client that sends nothing is disconnected after the handshake timeout.
func TestServerHandshakeTimeout(t *testing.T) {
	for name, hs := range map[string]func() *http.Server{
		"ReadHeaderTimeout": func() *http.Server {
			return &http.Server{ReadHeaderTimeout: 30 * time.Millisecond, ReadTimeout: time.Hour}
		},
		"ReadTimeout":  func() *http.Server { return &http.Server{ReadTimeout: 30 * time.Millisecond} },
		"WriteTimeout": func() *http.Server { return &http.Server{WriteTimeout: 30 * time.Millisecond} },
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, func(t *testing.T, p pairing) string {
				st := newStates()
				hs := hs()
				hs.ConnState = st.hook
				s := p.server.start(t, hs)
				conn, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				await(t, "a connection to end", st.over)
				hide := strings.NewReplacer(conn.LocalAddr().String(), "CLIENT", s.addr, "SERVER")
				return st.String() + hide.Replace(s.log.String())
			})
		})
	}
}

// Operations of handlers on their connections.
func TestHandlers(t *testing.T) {
	reports := make(chan string, 1)
	handlers := map[string]http.HandlerFunc{
		"flush": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "first")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "second")
		},
		"read deadline": func(w http.ResponseWriter, r *http.Request) {
			err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			_, readErr := io.ReadAll(r.Body)
			var netErr net.Error
			reports <- fmt.Sprint(err, errors.As(readErr, &netErr) && netErr.Timeout())
		},
		"write deadline": func(w http.ResponseWriter, r *http.Request) {
			err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-time.Second))
			_, writeErr := w.Write(make([]byte, 1<<20))
			reports <- fmt.Sprint(err, writeErr != nil)
		},
		"duplex": func(w http.ResponseWriter, r *http.Request) {
			err := http.NewResponseController(w).EnableFullDuplex()
			fmt.Fprint(w, err)
		},
		"push": func(w http.ResponseWriter, r *http.Request) {
			pusher, ok := w.(http.Pusher)
			if ok {
				fmt.Fprint(w, pusher.Push("/x", nil))
			}
			fmt.Fprint(w, ok)
		},
		"trailer": func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			w.Header().Set("Trailer", "X-After")
			fmt.Fprintf(w, "%d %v", len(body), err)
			w.Header().Set("X-After", "value")
		},
		"panic":    func(http.ResponseWriter, *http.Request) { panic("on purpose") },
		"abort":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"head":     func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "5") },
		"too much": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "2"); hello(w, r) },
		"short":    func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "20"); hello(w, r) },
		"limit": func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 10))
			fmt.Fprint(w, err)
		},
	}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			compare(t, func(t *testing.T, p pairing) string {
				s := p.server.start(t, &http.Server{Handler: handler})
				c := p.client.client(t, nil, p.http2)
				method, body := "GET", io.Reader(nil)
				switch name {
				case "read deadline":
					r, w := io.Pipe()
					defer w.Close()
					method, body = "POST", r
				case "trailer", "limit":
					method, body = "POST", strings.NewReader(strings.Repeat("x", 100))
				case "head":
					method = "HEAD"
				}
				req, _ := http.NewRequest(method, s.url("/"), body)
				out := ""
				resp, err := c.Do(req)
				if err == nil {
					var content []byte
					content, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					out = fmt.Sprintf("%s %q %v %d %v", resp.Status, content, resp.Trailer, resp.ContentLength, resp.TransferEncoding)
				}
				if strings.HasSuffix(name, "deadline") {
					return await(t, "the handler's report", reports)
				}
				log := ""
				if !p.http2 { // HTTP/2 logs after the client got its answer
					log, _, _ = strings.Cut(s.log.String(), "127.0.0.1")
				}
				return fmt.Sprintf("%s %s %s", out, hideAddr(err, s.addr), log)
			})
		})
	}
}

func TestOptionsOfTheServer(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "the handler")
		})})
		c := p.client.client(t, nil, p.http2)
		all := &url.URL{Scheme: "https", Host: s.addr, Opaque: "*"}
		resp, err := c.Do(&http.Request{Method: "OPTIONS", URL: all, Header: http.Header{}})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return fmt.Sprintf("%s %q", resp.Status, body)
	})
}

// A server's answers to invalid requests. ci/http-interop tests HTTP/2's.
func TestBadRequests(t *testing.T) {
	var want string
	for _, stack := range stacks {
		s := stack.start(t, &http.Server{Handler: http.HandlerFunc(hello), MaxHeaderBytes: 10 << 10})
		var out strings.Builder
		for _, request := range []string{
			"GET / HTTP/1.1\r\n\r\n",
			"GET / HTTP/3.0\r\nHost: x\r\n\r\n",
			"G E T\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: odd\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n",
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", // HTTP/2 without its ALPN
			"x",
		} {
			conn, err := tls.Dial("tcp", s.addr, clientConfig())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, request)
			_ = conn.CloseWrite()
			answer, _ := io.ReadAll(conn)
			_ = conn.Close()
			line, _, _ := strings.Cut(string(answer), "\r\n")
			fmt.Fprintf(&out, "%.20q: %q\n", request, line)
		}
		if want == "" {
			want = out.String()
		}
		if out.String() != want {
			t.Errorf("%s:\n%s\nnet/http:\n%s", stack.name, out.String(), want)
		}
	}
}

// Shutdown lets requests end, closes idle connections, and refuses new ones.
func TestShutdown(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		st := newStates()
		entered, finish := make(chan struct{}), make(chan struct{})
		s := p.server.start(t, &http.Server{ConnState: st.hook, Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					_, _ = io.WriteString(w, "begun ")
					_ = http.NewResponseController(w).Flush()
					close(entered)
					<-finish
				}
				hello(w, r)
			})})
		var hooks atomic.Int64
		hooked := make(chan struct{})
		s.http.RegisterOnShutdown(func() { hooks.Add(1); close(hooked) })
		idle, busy := p.client.client(t, nil, p.http2), p.client.client(t, nil, p.http2)
		fetch(t, idle, s.url("/"))
		answers := make(chan string, 1)
		go func() { answers <- fetch(t, busy, s.url("/slow")) }()
		await(t, "the handler to be entered", entered)
		result := make(chan error, 1)
		go func() { result <- s.Shutdown(soon(t)) }()
		await(t, "the idle connection to be closed", st.over)
		await(t, "RegisterOnShutdown's hook", hooked)
		_, err := idle.Get(s.url("/"))
		refused := err != nil
		early := len(result)
		close(finish)
		answer, shutdownErr := await(t, "the slow answer", answers), await(t, "Shutdown", result)
		serveErr := await(t, "Serve to return", s.done)
		s.done <- serveErr
		return fmt.Sprintf("refused=%v early=%d %q %v hooks=%d serve=%v", refused, early, answer, shutdownErr, hooks.Load(), serveErr)
	})
}

// Shutdown waits for a handshake under way, which is not followed by a request.
func TestShutdownDuringHandshake(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		st := newStates()
		began := make(chan struct{}, 1)
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(hello), ConnState: func(conn net.Conn, state http.ConnState) {
			st.hook(conn, state)
			if state == http.StateNew {
				began <- struct{}{}
			}
		}})
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		await(t, "a connection to be accepted", began)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		first := s.Shutdown(ctx)
		_ = conn.Close()
		second := s.Shutdown(soon(t))
		await(t, "the connection's last state", st.over) // which is reported after the point that Shutdown waits for
		return fmt.Sprint(first, second, st.String())
	})
}

// TestClose checks that Close closes all connections at once.
func TestClose(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		st := newStates()
		entered, left := make(chan struct{}), make(chan error, 1)
		s := p.server.start(t, &http.Server{ConnState: st.hook, Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					close(entered)
					<-r.Context().Done()
					left <- r.Context().Err()
					return
				}
				hello(w, r)
			})})
		half, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer half.Close()
		idle, busy := p.client.client(t, nil, p.http2), p.client.client(t, nil, p.http2)
		fetch(t, idle, s.url("/"))
		failed := make(chan error, 1)
		go func() {
			_, err := busy.Get(s.url("/slow"))
			failed <- err
		}()
		await(t, "the handler to be entered", entered)
		closeErr := s.Close()
		_, halfErr := half.Read(make([]byte, 1))
		for range 3 {
			await(t, "a connection to end", st.over)
		}
		requestErr, handled := await(t, "the request to fail", failed), await(t, "the handler to end", left)
		return fmt.Sprint(closeErr, requestErr != nil, handled, halfErr != nil, s.Close())
	})
}

// Serving after Shutdown or Close is refused.
func TestServeAfterwards(t *testing.T) {
	for _, s := range stacks {
		server := s.server(&http.Server{TLSConfig: serverConfig()})
		if err := server.Shutdown(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := server.ServeTLS(listen(t), "", ""); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func TestServerProtocols(t *testing.T) {
	only := func(set func(*http.Protocols, bool)) *http.Protocols {
		p := new(http.Protocols)
		set(p, true)
		return p
	}
	for name, hs := range map[string]func() *http.Server{
		"HTTP1":       func() *http.Server { return &http.Server{Protocols: only((*http.Protocols).SetHTTP1)} },
		"HTTP2":       func() *http.Server { return &http.Server{Protocols: only((*http.Protocols).SetHTTP2)} },
		"unencrypted": func() *http.Server { return &http.Server{Protocols: only((*http.Protocols).SetUnencryptedHTTP2)} },
		"TLSNextProto": func() *http.Server {
			return &http.Server{TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
		},
		"streams": func() *http.Server { return &http.Server{HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 7}} },
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, func(t *testing.T, p pairing) string {
				hs := hs()
				hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
				s := p.server.start(t, hs)
				resp, err := p.client.client(t, nil, p.http2).Get(s.url("/"))
				if err != nil {
					return "an error"
				}
				body, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				return string(body)
			})
		})
	}
}

func TestServerRefusals(t *testing.T) {
	next := map[string]func(*http.Server, *tls.Conn, http.Handler){"foo": nil}
	renegotiating := serverConfig()
	renegotiating.Renegotiation = tls.RenegotiateOnceAsClient
	for field, hs := range map[string]*http.Server{
		"http.Server.TLSNextProto": {TLSNextProto: next, TLSConfig: serverConfig()},
		"Renegotiation":            {TLSConfig: renegotiating},
	} {
		l := listen(t)
		err := (&httptls.Server{Server: hs}).ServeTLS(l, "", "")
		if e, ok := errors.AsType[*ossl.ConfigError](err); !ok || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := l.Accept(); err == nil {
			t.Errorf("%s: the listener is open", field)
		}
	}
}

// A server whose clients have pre-shared keys needs no certificate. One that may need it does, and so does
// one without keys.
func TestServeByPSK(t *testing.T) {
	psk := &ossl.PSK{Identity: []byte("meter-17"), Key: []byte("a key of 16 bytes")}
	lookup := ossl.WithPSKLookup(func(_ context.Context, identity []byte) (*ossl.PSK, error) {
		if string(identity) != string(psk.Identity) {
			return nil, nil
		}
		return psk, nil
	})
	server := &httptls.Server{Server: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	})}, Options: []ossl.Option{lookup}}
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(l, "", "") }()
	client, err := ossl.NewContext(nil, ossl.WithPSK(func(context.Context, string) (*ossl.PSK, error) { return psk, nil }))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(answer), "HTTP/1.0") {
		t.Errorf("answer %q, %v", answer, err)
	}
	_ = server.Close()
	if err := await(t, "the server to end", served); !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	for name, options := range map[string][]ossl.Option{"no keys": nil, "or a certificate": {lookup, ossl.WithPSKOrCertificate()}} {
		server := &httptls.Server{Server: &http.Server{}, Options: options}
		go func() { served <- server.ServeTLS(listen(t), "", "") }()
		if err := await(t, "the server to end", served); err == nil || errors.Is(err, http.ErrServerClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The functions named as in net/http, with certificates from files.
func TestServeFunctions(t *testing.T) {
	cert, key := writePair(t, serverCert())
	c := openSSL.client(t, nil, true)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	t.Run("ServeTLS", func(t *testing.T) {
		l := listen(t)
		done := make(chan error, 1)
		go func() { done <- httptls.ServeTLS(l, handler, cert, key) }()
		if got := fetch(t, c, "https://"+l.Addr().String()); got != "HTTP/2.0" {
			t.Error(got)
		}
		_ = l.Close()
		if err := await(t, "Serve to return", done); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	t.Run("Serve", func(t *testing.T) {
		config := serverConfig()
		config.NextProtos = []string{"h2", "http/1.1"}
		l, err := ossl.Listen("tcp", "127.0.0.1:0", config)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- httptls.Serve(l, handler) }()
		if got := fetch(t, c, "https://"+l.Addr().String()); got != "HTTP/2.0" {
			t.Error(got)
		}
		_ = l.Close()
		await(t, "Serve to return", done)
	})
	t.Run("cut chain", func(t *testing.T) { // package pem skips the second block
		text, err := os.ReadFile(cert)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cert+".cut", append(text, text[:len(text)-9]...), 0o600); err != nil {
			t.Fatal(err)
		}
		l := listen(t)
		_ = l.Close() // so that Serve would return
		if err := httptls.ServeTLS(l, handler, cert+".cut", key); err == nil || errors.Is(err, net.ErrClosed) {
			t.Errorf("served: %v", err)
		}
	})
	t.Run("no file", func(t *testing.T) {
		if err := httptls.ListenAndServeTLS("127.0.0.1:0", cert, key+".none", handler); err == nil {
			t.Error("served without a key")
		}
		if err := httptls.ListenAndServeTLS("127.0.0.1:99999", cert, key, handler); err == nil {
			t.Error("listened")
		}
	})
}

// A server serves connections without TLS too, as net/http's Serve does.
func TestServePlainConnections(t *testing.T) {
	s := &httptls.Server{Server: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS == nil)
	})}}
	l := listen(t)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	if got := fetch(t, openSSL.client(t, nil, true), "http://"+l.Addr().String()); got != "true" {
		t.Error(got)
	}
	if err := s.Shutdown(soon(t)); err != nil {
		t.Error(err)
	}
	if err := await(t, "Serve to return", done); !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// A hijacked connection belongs to the handler, with its TLS state.
func TestHijack(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				fmt.Fprintf(w, "%v", err)
				return
			}
			defer conn.Close()
			state := conn.(interface{ ConnectionState() tls.ConnectionState }).ConnectionState()
			line, _ := rw.ReadString('\n')
			fmt.Fprintf(conn, "%s %v\n", strings.TrimSpace(line), state.HandshakeComplete)
		})})
		if p.http2 {
			return fetch(t, p.client.client(t, nil, true), s.url("/"))
		}
		conn, err := tls.Dial("tcp", s.addr, clientConfig())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\nright after\n")
		line, err := bufio.NewReader(conn).ReadString('\n')
		return fmt.Sprint(line, err)
	})
}

// Temporary errors of Accept don't end a server.
func TestAcceptErrors(t *testing.T) {
	for _, stack := range stacks {
		l := &flakyListener{Listener: listen(t)}
		s := stack.startOn(t, l, &http.Server{Handler: http.HandlerFunc(hello)})
		if got := fetch(t, stack.client(t, nil, false), s.url("/")); got != "hello" {
			t.Error(got)
		}
		if !strings.Contains(s.log.String(), "Accept error: flaky; retrying in 5ms") {
			t.Errorf("%s: %s", stack.name, s.log)
		}
	}
}

type flakyListener struct {
	net.Listener
	failed atomic.Bool
}

func (l *flakyListener) Accept() (net.Conn, error) {
	if !l.failed.Swap(true) {
		return nil, &flakyError{}
	}
	return l.Listener.Accept()
}

type flakyError struct{}

func (*flakyError) Error() string   { return "flaky" }
func (*flakyError) Timeout() bool   { return false }
func (*flakyError) Temporary() bool { return true }
