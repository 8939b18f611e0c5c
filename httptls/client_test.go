package httptls_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

const time10s = 10 * time.Second

// A countingListener counts the connections it accepts.
type countingListener struct {
	net.Listener
	accepted atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}

func listen(t testing.TB) *countingListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &countingListener{Listener: l}
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// fetch returns a GET's body, or fails the test.
func fetch(t testing.TB, c *http.Client, url string) string {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestConnectionsAreReused(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		l := listen(t)
		s := p.server.startOn(t, l, &http.Server{Handler: http.HandlerFunc(hello)})
		c := p.client.client(t, nil, p.http2)
		for range 5 {
			fetch(t, c, s.url("/"))
		}
		first := l.accepted.Load()
		c.CloseIdleConnections()
		fetch(t, c, s.url("/"))
		return fmt.Sprintf("%d connections, %d after CloseIdleConnections", first, l.accepted.Load())
	})
}

func TestKeepAlivesDisabled(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		l := listen(t)
		s := p.server.startOn(t, l, &http.Server{Handler: http.HandlerFunc(hello)})
		c := p.client.client(t, &http.Transport{DisableKeepAlives: true}, p.http2)
		for range 3 {
			fetch(t, c, s.url("/"))
		}
		return fmt.Sprintf("%d connections", l.accepted.Load())
	})
}

func TestMaxConnsPerHost(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		l := listen(t)
		var now, others atomic.Int64
		s := p.server.startOn(t, l, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			others.Add(now.Add(1) - 1)
			defer now.Add(-1)                // before the answer, which is short, is sent
			time.Sleep(5 * time.Millisecond) // for more connections to arrive, if there are any
			hello(w, r)
		})})
		c := p.client.client(t, &http.Transport{MaxConnsPerHost: 1}, p.http2)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { fetch(t, c, s.url("/")) })
		}
		wg.Wait()
		if p.http2 {
			return fmt.Sprintf("%d connections", l.accepted.Load())
		}
		// One after the other: net/http replaces a connection whose writer hasn't reported 50 ms
		// after the answer.
		return fmt.Sprintf("%d times another request at once", others.Load())
	})
}

// For any number of simultaneous first requests, at most one connection is made for each; with
// HTTP/2 one is kept.
func TestFirstRequestsAtOnce(t *testing.T) {
	const requests = 30
	eachPairing(t, func(t *testing.T, p pairing) {
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(hello)})
		var dials atomic.Int64
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return overIPv4(ctx, network, addr)
		}
		c := p.client.client(t, &http.Transport{MaxIdleConnsPerHost: requests, DialContext: dial}, p.http2)
		var wg sync.WaitGroup
		for range requests {
			wg.Go(func() {
				resp, err := c.Post(s.url("/"), "text/plain", io.MultiReader(strings.NewReader("unreplayable")))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
		}
		wg.Wait()
		if made := dials.Load(); made > requests {
			t.Errorf("%d connections for %d requests", made, requests)
		}
		// Dials that a first request has begun, but didn't wait for, may still be counted.
		for i := range 5 {
			reused := false
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
			})
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url("/"), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if p.http2 && !reused {
				t.Errorf("request %d after the others has a connection of its own", i)
			}
		}
	})
}

// A server may change the protocol that it chooses: the one that a connection was dialled for
// doesn't decide how it is used.
func TestServerChangesItsProtocol(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		if !p.http2 {
			return ""
		}
		var http2 atomic.Bool
		both, one := serverConfig(), serverConfig()
		both.NextProtos, one.NextProtos = []string{"h2", "http/1.1"}, []string{"http/1.1"}
		config := serverConfig()
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if http2.Load() {
				return both, nil
			}
			return one, nil
		}
		l := listen(t)
		s := p.server.startOn(t, l, &http.Server{TLSConfig: config, Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %s", r.Proto, body)
			})})
		c := p.client.client(t, nil, true)
		var out strings.Builder
		for _, on := range []bool{false, true, false, true, true, false} {
			http2.Store(on)
			c.CloseIdleConnections()
			for range 2 {
				resp, err := c.Post(s.url("/"), "text/plain", io.MultiReader(strings.NewReader("unreplayable")))
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				fmt.Fprintf(&out, "%s\n", body)
			}
		}
		return fmt.Sprintf("%s%d connections", out.String(), l.accepted.Load())
	})
}

// Servers that choose no protocol, or none of those offered.
func TestWrongALPN(t *testing.T) {
	for _, protos := range [][]string{nil, {"http/1.1"}, {"h2"}, {"http/1.0", "spdy/3"}} {
		t.Run(strings.Join(protos, ","), func(t *testing.T) {
			compareClients(t, func(t *testing.T, p pairing) string {
				config := serverConfig()
				config.NextProtos = protos
				inner := listen(t)
				l := tls.NewListener(inner, config)
				hs := &http.Server{Handler: http.HandlerFunc(hello), TLSConfig: &tls.Config{}} // HTTP/1.1 on all connections
				hs.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
				hs.ErrorLog = discardLog
				go func() { _ = hs.Serve(l) }()
				t.Cleanup(func() { _ = hs.Close() })
				c := p.client.client(t, nil, p.http2)
				resp, err := c.Get("https://" + inner.Addr().String() + "/")
				if err != nil {
					return fmt.Sprintf("timeout=%v", errors.Is(err, os.ErrDeadlineExceeded))
				}
				_ = resp.Body.Close()
				return fmt.Sprintf("%s %s", resp.Proto, resp.Status)
			})
		})
	}
}

// A server that agrees on HTTP/2 and closes is an error, after a few connections at most.
func TestHTTP2ServerCloses(t *testing.T) {
	compareClients(t, func(t *testing.T, p pairing) string {
		config := serverConfig()
		config.NextProtos = []string{"h2", "http/1.1"}
		inner := listen(t)
		l := tls.NewListener(inner, config)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					_ = conn.(*tls.Conn).Handshake()
					_ = conn.Close()
				}()
			}
		}()
		resp, err := p.client.client(t, nil, p.http2).Get("https://" + inner.Addr().String() + "/")
		if err == nil {
			_ = resp.Body.Close()
		}
		return fmt.Sprintf("error=%v few=%v", err != nil, inner.accepted.Load() < 10)
	})
}

func TestTimeouts(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-release:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // otherwise the body would end regularly, perhaps before the client's connection does
		}
	})
	describe := func(err error) string {
		var netErr net.Error
		return fmt.Sprintf("timeout=%v deadline=%v canceled=%v", errors.As(err, &netErr) && netErr.Timeout(),
			errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled))
	}
	t.Run("ResponseHeaderTimeout", func(t *testing.T) {
		compare(t, func(t *testing.T, p pairing) string {
			s := p.server.start(t, &http.Server{Handler: slow})
			c := p.client.client(t, &http.Transport{ResponseHeaderTimeout: 50 * time.Millisecond}, p.http2)
			_, err := c.Get(s.url("/"))
			return describe(err)
		})
	})
	t.Run("Client.Timeout", func(t *testing.T) {
		compare(t, func(t *testing.T, p pairing) string {
			s := p.server.start(t, &http.Server{Handler: slow})
			c := p.client.client(t, nil, p.http2)
			c.Timeout = 50 * time.Millisecond
			_, err := c.Get(s.url("/"))
			return describe(err)
		})
	})
	t.Run("canceled", func(t *testing.T) {
		compare(t, func(t *testing.T, p pairing) string {
			s := p.server.start(t, &http.Server{Handler: slow})
			c := p.client.client(t, nil, p.http2)
			ctx, cancel := context.WithCancel(context.Background())
			req, _ := http.NewRequestWithContext(ctx, "GET", s.url("/body"), nil)
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			return describe(err)
		})
	})
	t.Run("TLSHandshakeTimeout", func(t *testing.T) {
		compareClients(t, func(t *testing.T, p pairing) string {
			l := listen(t) // whose connections nobody accepts
			t.Cleanup(func() { _ = l.Close() })
			c := p.client.client(t, &http.Transport{TLSHandshakeTimeout: 50 * time.Millisecond}, p.http2)
			_, err := c.Get("https://" + l.Addr().String())
			return describe(err) + " " + hideAddr(err, l.Addr().String())
		})
	})
	t.Run("canceled handshake", func(t *testing.T) {
		compareClients(t, func(t *testing.T, p pairing) string {
			l := listen(t)
			t.Cleanup(func() { _ = l.Close() })
			c := p.client.client(t, nil, p.http2)
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "GET", "https://"+l.Addr().String(), nil)
			_, err := c.Do(req)
			return describe(err)
		})
	})
}

// An idle connection is closed after IdleConnTimeout: the server sees its end.
func TestIdleConnTimeout(t *testing.T) {
	eachPairing(t, func(t *testing.T, p pairing) {
		ended := make(chan struct{}, 1)
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(hello), ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				ended <- struct{}{}
			}
		}})
		c := p.client.client(t, &http.Transport{IdleConnTimeout: 20 * time.Millisecond}, p.http2)
		fetch(t, c, s.url("/"))
		await(t, "the server to see the connection's end", ended)
	})
}

func TestErrorsOfDials(t *testing.T) {
	compareClients(t, func(t *testing.T, p pairing) string {
		closed, l := listen(t), listen(t) // two listeners at once, so that their ports differ
		gone := closed.Addr().String()
		_ = closed.Close()
		plain := &http.Server{Handler: http.HandlerFunc(hello), ErrorLog: discardLog}
		go func() { _ = plain.Serve(l) }()
		t.Cleanup(func() { _ = plain.Close() })
		var out strings.Builder
		c := p.client.client(t, nil, p.http2)
		for _, u := range []string{"https://" + gone + "/", "https://" + l.Addr().String() + "/", "foo://x/", "https:///x"} {
			_, err := c.Get(u)
			fmt.Fprintln(&out, hideAddr(errors.New(hideAddr(err, gone)), l.Addr().String()))
		}
		_, err := c.Do(&http.Request{Method: "BAD METHOD", URL: &url.URL{Scheme: "https", Host: gone}, Header: http.Header{}})
		fmt.Fprintln(&out, hideAddr(err, gone))
		_, err = c.Do(&http.Request{URL: &url.URL{Scheme: "https", Host: gone}, Header: http.Header{"Bad\n": {"x"}}})
		fmt.Fprintln(&out, hideAddr(err, gone))
		return out.String()
	})
}

// TestVerification checks that a server that can't be verified is refused, with any protocol, and
// that the error is about its certificate.
func TestVerification(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		var requests atomic.Int64
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) })})
		var out strings.Builder
		for _, config := range []*tls.Config{{}, {RootCAs: pool(), ServerName: "other.example"}} {
			c := p.client.client(t, &http.Transport{TLSClientConfig: config}, p.http2)
			_, err := c.Post(s.url("/"), "text/plain", strings.NewReader("secret"))
			var verification *tls.CertificateVerificationError
			fmt.Fprintf(&out, "%v %v\n", errors.As(err, &verification), hideAddr(err, s.addr))
		}
		return fmt.Sprintf("%s%d requests", out.String(), requests.Load())
	})
}

// A setting that can't be honoured is refused by name.
func TestRefusedSettings(t *testing.T) {
	dial := func(string, string) (net.Conn, error) { return nil, io.EOF }
	dialContext := func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }
	next := map[string]func(string, *tls.Conn) http.RoundTripper{"foo": nil}
	for name, base := range map[string]*http.Transport{
		"http.Transport.DialTLS":        {DialTLS: dial},
		"http.Transport.DialTLSContext": {DialTLSContext: dialContext},
		"http.Transport.TLSNextProto":   {TLSNextProto: next},
		"Renegotiation":                 {TLSClientConfig: &tls.Config{Renegotiation: tls.RenegotiateOnceAsClient}},
	} {
		_, err := httptls.NewTransport(base)
		if e, ok := errors.AsType[*ossl.ConfigError](err); !ok || e.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Which protocol a transport uses is net/http's decision.
func TestProtocolSettings(t *testing.T) {
	protocols := func(set ...func(*http.Protocols, bool)) *http.Protocols {
		p := new(http.Protocols)
		for _, f := range set {
			f(p, true)
		}
		return p
	}
	h1, h2 := (*http.Protocols).SetHTTP1, (*http.Protocols).SetHTTP2
	for name, base := range map[string]func() *http.Transport{
		"zero": func() *http.Transport { return &http.Transport{TLSClientConfig: clientConfig()} },
		"forced": func() *http.Transport {
			return &http.Transport{TLSClientConfig: clientConfig(), ForceAttemptHTTP2: true}
		},
		"HTTP1":         func() *http.Transport { return &http.Transport{Protocols: protocols(h1), ForceAttemptHTTP2: true} },
		"HTTP2":         func() *http.Transport { return &http.Transport{Protocols: protocols(h2)} },
		"both":          func() *http.Transport { return &http.Transport{Protocols: protocols(h1, h2)} },
		"dialer":        func() *http.Transport { return &http.Transport{DialContext: overIPv4, TLSClientConfig: clientConfig()} },
		"dialer forced": func() *http.Transport { return &http.Transport{DialContext: overIPv4, ForceAttemptHTTP2: true} },
		"TLSNextProto": func() *http.Transport {
			return &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, ForceAttemptHTTP2: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want string
			for _, client := range stacks {
				s := openSSL.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, r.Proto)
				})})
				b := base()
				if b.TLSClientConfig == nil {
					b.TLSClientConfig = clientConfig()
				}
				rt, err := client.transport(b)
				if err != nil {
					t.Fatal(err)
				}
				c := &http.Client{Transport: rt}
				got := fetch(t, c, s.url("/"))
				c.CloseIdleConnections()
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%s uses %s, net/http %s", client.name, got, want)
				}
			}
		})
	}
}

// A transport that net/http has already used, such as http.DefaultTransport, can be a base too.
func TestUsedBase(t *testing.T) {
	s := openSSL.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	})})
	base := &http.Transport{}
	base.CloseIdleConnections() // initialises it
	base.TLSClientConfig.RootCAs = pool()
	c, err := httptls.NewClient(base)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if proto := fetch(t, c, s.url("/")); proto != "HTTP/2.0" {
		t.Errorf("%s", proto)
	}
}

func TestWebSocketRequest(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "" {
				_, _ = io.WriteString(w, r.Proto)
				return
			}
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			_ = rw.Flush()
			line, _ := rw.ReadString('\n')
			_, _ = rw.WriteString("echo " + line)
			_ = rw.Flush()
		})})
		c := p.client.client(t, nil, p.http2)
		out := fetch(t, c, s.url("/")) // now there is a connection for HTTP/2
		req, _ := http.NewRequest("GET", s.url("/"), nil)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "WebSocket")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		conn, ok := resp.Body.(io.ReadWriteCloser)
		if !ok {
			t.Fatalf("%T", resp.Body)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "over the socket\n")
		answer, err := io.ReadAll(conn)
		return fmt.Sprintf("%s, %s %q %q %v", out, resp.Status, answer, resp.TLS.NegotiatedProtocol, err)
	})
}

func TestWithHeaders(t *testing.T) {
	s := openSSL.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Token")+r.UserAgent())
	})})
	c := openSSL.client(t, nil, true)
	c.Transport = httptls.WithHeaders(c.Transport, func(h http.Header) {
		h.Set("X-Token", "t")
		h.Set("User-Agent", "agent")
	})
	defer c.CloseIdleConnections()
	req, _ := http.NewRequest("GET", s.url("/"), nil)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(body) != "tagent" {
		t.Errorf("%q", body)
	}
	if len(req.Header) != 0 {
		t.Errorf("the caller's request has now %v", req.Header)
	}
}

// TestWithHeadersRedirected: credentials don't follow a redirect to another host, or to http.
func TestWithHeadersRedirected(t *testing.T) {
	var got http.Header
	mux := http.NewServeMux()
	mux.HandleFunc("/end", func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	target := ""
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) })
	plain := httptest.NewServer(mux)
	defer plain.Close()
	secure := httptls.NewTestServer(t, mux)
	secure.StartTLS()
	elsewhere := func(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }
	client := secure.Client()
	client.Transport = httptls.WithHeaders(client.Transport, func(h http.Header) {
		h.Set("Authorization", "secret")
		h["cookie"] = []string{"a=secret"} // net/http sends the name as it is
		h.Set("X-Other", "other")
	})
	for _, c := range []struct {
		name, from, to string
		kept           bool
	}{
		{"the same host", plain.URL, plain.URL + "/end", true},
		{"another port", secure.URL, secure.URL + "/end", true},
		{"to https", plain.URL, secure.URL + "/end", true},
		{"another host", plain.URL, elsewhere(plain.URL) + "/end", false},
		{"to http", secure.URL, plain.URL + "/end", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			target = c.to
			req, _ := http.NewRequest("GET", c.from, nil)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if kept := got.Get("Authorization") != "" && got.Get("Cookie") != ""; kept != c.kept || got.Get("X-Other") != "other" {
				t.Errorf("%v", got)
			}
		})
	}
}

// Bodies are closed, at the latest when RoundTrip has returned, even if the request fails.
func TestBodiesAreClosed(t *testing.T) {
	eachPairing(t, func(t *testing.T, p pairing) {
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(hello)})
		c := p.client.client(t, nil, p.http2)
		for _, u := range []string{s.url("/"), s.url("/"), "https://127.0.0.1:1/", "foo://x/"} {
			body := &watchedBody{Reader: strings.NewReader("text"), closed: make(chan struct{})}
			req, _ := http.NewRequest("POST", u, body)
			if resp, err := c.Do(req); err == nil {
				_ = resp.Body.Close()
			}
			await(t, "the body to be closed", body.closed)
		}
	})
}

type watchedBody struct {
	io.Reader
	once   sync.Once
	closed chan struct{}
}

func (b *watchedBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// GODEBUG turns HTTP/2 off here if it does in net/http.
func TestGODEBUG(t *testing.T) {
	for _, setting := range []string{"http2client=0", "http2server=0", "http2client=1,http2server=1"} {
		t.Run(setting, func(t *testing.T) {
			t.Setenv("GODEBUG", setting)
			compare(t, func(t *testing.T, p pairing) string {
				s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, r.Proto)
				})})
				return fetch(t, p.client.client(t, nil, p.http2), s.url("/"))
			})
		})
	}
}

// TestOnceMade: a Context that a client needs later is made again after an error, and then kept.
func TestOnceMade(t *testing.T) {
	calls, failure := 0, errors.New("no memory")
	get := httptls.OnceMade(func() (*ossl.Context, error) {
		calls++
		if failure != nil {
			return nil, failure
		}
		return ossl.NewContext(nil)
	})
	if _, err := get(); err != failure {
		t.Fatal(err)
	}
	failure = nil
	first, err := get()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := get(); err != nil || again != first || calls != 2 {
		t.Errorf("%v after %d calls, another Context: %v", err, calls, again != first)
	}
}
