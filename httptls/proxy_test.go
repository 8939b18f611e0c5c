package httptls_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/httptls"
)

// A testProxy speaks CONNECT and plain forwarding over HTTP, or SOCKS5, and records its requests.
type testProxy struct {
	mu    sync.Mutex
	asked []string
}

func (p *testProxy) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, fmt.Sprintf(format, args...))
}

func (p *testProxy) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, "\n")
}

func (p *testProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user := "none"
	if auth, ok := strings.CutPrefix(r.Header.Get("Proxy-Authorization"), "Basic "); ok {
		decoded, _ := base64.StdEncoding.DecodeString(auth)
		user = string(decoded)
	}
	p.note("%s %s %s tls=%v user=%s x=%q agent=%s", r.Method, r.Host, r.Proto, r.TLS != nil, user, r.Header["X-Proxy"],
		r.UserAgent())
	if r.Method != http.MethodConnect {
		r.RequestURI = ""
		r.Header.Del("Proxy-Authorization")
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
		return
	}
	if user == "bad:secret" {
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	target, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Proxy-Answer: here\r\n\r\n")
	relay(conn, rw.Reader, target)
}

func relay(conn net.Conn, from io.Reader, target net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(target, from)
		_ = target.Close()
	})
	_, _ = io.Copy(conn, target)
	_ = conn.Close()
	wg.Wait()
}

// startProxy starts a proxy of a scheme and returns its URL.
func startProxy(t *testing.T, p *testProxy, scheme string, on *stack) *url.URL {
	t.Helper()
	if scheme == "socks5" {
		return startSOCKS(t, p)
	}
	hs := &http.Server{Handler: p, ErrorLog: discardLog, Protocols: new(http.Protocols)}
	hs.Protocols.SetHTTP1(true)
	if scheme == "https" {
		s := on.start(t, hs)
		return &url.URL{Scheme: scheme, Host: s.addr}
	}
	l := listen(t)
	go func() { _ = hs.Serve(l) }()
	t.Cleanup(func() { _ = hs.Close() })
	return &url.URL{Scheme: scheme, Host: l.Addr().String()}
}

// startSOCKS starts a SOCKS5 proxy for user "user", or for anonymous clients: RFC 1928 and 1929.
func startSOCKS(t *testing.T, p *testProxy) *url.URL {
	t.Helper()
	l := listen(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serveSOCKS(p, conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return &url.URL{Scheme: "socks5", Host: l.Addr().String()}
}

func serveSOCKS(p *testProxy, conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	read := func(n int) []byte {
		b := make([]byte, n)
		_, _ = io.ReadFull(r, b)
		return b
	}
	methods := read(int(read(2)[1]))
	user := "none"
	if strings.Contains(string(methods), "\x02") {
		_, _ = conn.Write([]byte{5, 2})
		name := read(int(read(2)[1]))
		password := read(int(read(1)[0]))
		user = string(name) + ":" + string(password)
		if user == "bad:secret" {
			_, _ = conn.Write([]byte{1, 1})
			return
		}
		_, _ = conn.Write([]byte{1, 0})
	} else {
		_, _ = conn.Write([]byte{5, 0})
	}
	var host string
	switch head := read(4); head[3] {
	case 1:
		host = net.IP(read(4)).String()
	case 3:
		host = string(read(int(read(1)[0])))
	default:
		return
	}
	port := read(2)
	addr := net.JoinHostPort(host, fmt.Sprint(int(port[0])<<8|int(port[1])))
	p.note("SOCKS %s user=%s", addr, user)
	target, err := net.Dial("tcp", addr)
	if err != nil {
		_, _ = conn.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
		return
	}
	_, _ = conn.Write([]byte{5, 0, 0, 1, 127, 0, 0, 1, 0, 0})
	relay(conn, r, target)
}

func TestProxies(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		for _, user := range []*url.Userinfo{nil, url.UserPassword("user", "secret"), url.UserPassword("bad", "secret")} {
			t.Run(scheme+"/"+user.String(), func(t *testing.T) {
				compare(t, func(t *testing.T, p pairing) string {
					var proxy testProxy
					u := startProxy(t, &proxy, scheme, p.server)
					u.User = user
					s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						fmt.Fprintf(w, "%s %v", r.Proto, r.Header["Proxy-Authorization"])
					})})
					plain := &http.Server{Handler: http.HandlerFunc(hello)}
					l := listen(t)
					go func() { _ = plain.Serve(l) }()
					t.Cleanup(func() { _ = plain.Close() })

					base := &http.Transport{Proxy: http.ProxyURL(u), DialContext: overIPv4,
						ProxyConnectHeader: http.Header{"X-Proxy": {"constant"}}}
					c := p.client.client(t, base, p.http2)
					var out strings.Builder
					_, port, _ := net.SplitHostPort(s.addr)
					_, gone, _ := net.SplitHostPort(l.Addr().String())
					hide := strings.NewReplacer(port, "PORT", gone, "PLAIN", u.Host, "PROXY")
					for _, target := range []string{"https://localhost:" + port + "/", s.url("/"), s.url("/"), "http://" + l.Addr().String(),
						"https://127.0.0.1:1/"} {
						resp, err := c.Get(target)
						if err != nil {
							var op *net.OpError
							fmt.Fprintf(&out, "%s op=%v\n", hide.Replace(err.Error()), errors.As(err, &op) && op.Op != "")
							continue
						}
						body, err := io.ReadAll(resp.Body)
						_ = resp.Body.Close()
						fmt.Fprintf(&out, "%s %s %v tls=%v\n", resp.Status, body, err, resp.TLS != nil)
					}
					return out.String() + hide.Replace(proxy.String())
				})
			})
		}
	}
}

func TestProxyHooks(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		var out strings.Builder
		for _, scheme := range []string{"http", "https"} {
			var proxy testProxy
			u := startProxy(t, &proxy, scheme, p.server)
			s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(hello)})
			hide := strings.NewReplacer(s.addr, "ADDR", u.Host, "PROXY")
			refuse := false
			base := &http.Transport{
				Proxy: http.ProxyURL(u),
				GetProxyConnectHeader: func(_ context.Context, u *url.URL, target string) (http.Header, error) {
					fmt.Fprintf(&out, "header for %s by %s\n", hide.Replace(target), hide.Replace(u.Host))
					return http.Header{"X-Proxy": {"made"}}, nil
				},
				OnProxyConnectResponse: func(_ context.Context, u *url.URL, req *http.Request, resp *http.Response) error {
					fmt.Fprintf(&out, "answer of %s to %s: %s %s\n", hide.Replace(u.Host), hide.Replace(req.Host), resp.Status,
						resp.Header.Get("X-Proxy-Answer"))
					if refuse {
						return errors.New("refused by the hook")
					}
					return nil
				},
			}
			c := p.client.client(t, base, p.http2)
			var log traceLog
			req, _ := http.NewRequestWithContext(log.context(s.addr), "GET", s.url("/"), nil)
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			refuse = true
			c.CloseIdleConnections()
			_, err = c.Get(s.url("/"))
			trace := hide.Replace(log.String())
			trace = strings.Replace(trace, "GetConn PROXY", "GetConn ADDR", 1) // a difference that docs/HTTP.md describes
			if scheme == "https" {
				// net/http offers HTTP/2 to a proxy, though it can't use it there.
				trace = strings.ReplaceAll(trace, `alpn="http/1.1"`, `alpn=""`)
			}
			fmt.Fprintf(&out, "%s\n%s\n%s\n", hide.Replace(fmt.Sprint(err)), trace, hide.Replace(proxy.String()))
		}
		return out.String()
	})
}

// Malformed proxy answers lead to an error soon.
func TestLyingProxies(t *testing.T) {
	for name, answer := range map[string]string{
		"200 then garbage":    "HTTP/1.1 200 OK\r\n\r\nthis is no TLS at all, is it",
		"407":                 "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
		"closes":              "",
		"closes in its head":  "HTTP/1.1 200 O",
		"garbage":             "\x00\x01\x02\x03\r\n\r\n",
		"redirects":           "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:1/\r\n\r\n",
		"no text":             "HTTP/1.1 500\r\n\r\n",
		"200 and then closes": "HTTP/1.1 200 OK\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = http.ReadRequest(bufio.NewReader(conn))
					_, _ = io.WriteString(conn, answer)
					if strings.Contains(name, "garbage") {
						_, _ = io.Copy(io.Discard, conn) // until the client gives up
					}
					_ = conn.Close()
				}
			}()
			u := &url.URL{Scheme: "http", Host: l.Addr().String()}
			c := openSSL.client(t, &http.Transport{Proxy: http.ProxyURL(u), TLSHandshakeTimeout: time10s}, true)
			resp, err := c.Get("https://localhost/")
			if err == nil {
				t.Fatalf("%s", resp.Status)
			}
			t.Log(err)
		})
	}
}

// A proxy that doesn't answer is given up when the request is.
func TestSilentProxy(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			l := listen(t)
			t.Cleanup(func() { _ = l.Close() })
			u := &url.URL{Scheme: scheme, Host: l.Addr().String()}
			c := openSSL.client(t, &http.Transport{Proxy: http.ProxyURL(u)}, true)
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "GET", "https://localhost/", nil)
			if _, err := c.Do(req); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestProxyURLs(t *testing.T) {
	for _, u := range []*url.URL{{Scheme: "ftp", Host: "127.0.0.1:1"}, {Scheme: "http"}} {
		rt, err := httptls.NewTransport(&http.Transport{Proxy: http.ProxyURL(u)})
		if err != nil {
			t.Fatal(err)
		}
		body := &watchedBody{Reader: strings.NewReader(""), closed: make(chan struct{})}
		req, _ := http.NewRequest("POST", "https://localhost/", body)
		if _, err := rt.RoundTrip(req); err == nil {
			t.Errorf("%v was used", u)
		}
		await(t, "the body to be closed", body.closed)
	}
}

// A Transport doesn't grow without bound if its Proxy function returns another URL for each
// request.
func TestManyProxies(t *testing.T) {
	var proxy testProxy
	u := startProxy(t, &proxy, "http", netHTTP)
	s := openSSL.start(t, &http.Server{Handler: http.HandlerFunc(hello)})
	session := 0
	c := openSSL.client(t, &http.Transport{Proxy: func(*http.Request) (*url.URL, error) {
		session++
		with := *u
		with.User = url.UserPassword(fmt.Sprint("session", session), "secret")
		return &with, nil
	}}, true)
	for range 150 {
		fetch(t, c, s.url("/"))
	}
	if n := httptls.Routes(c.Transport.(*httptls.Transport)); n > 128 {
		t.Errorf("%d routes are kept", n)
	}
}
