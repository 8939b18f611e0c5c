package terminator_test

import (
	"bufio"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestEarlyAnswers: if a backend answers before it has all of the body of the request, the client
// gets one response, which closes the connection. What follows of the body isn't taken for requests.
func TestEarlyAnswers(t *testing.T) {
	const (
		host     = "Host: localhost\r\n"
		smuggled = "TRACE /smuggled HTTP/1.1\r\n" + host + "\r\nOPTIONS * HTTP/1.1\r\n" + host + "\r\n"
	)
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct {
			name, header, begin, rest string
			read                      int64 // that the backend reads before it answers
			length                    bool  // the response has a Content-Length
		}{
			{"within a chunk", "Transfer-Encoding: chunked\r\n", "52\r\n", smuggled + "\r\n0\r\n\r\n", 0, true},
			{"between chunks", "Transfer-Encoding: chunked\r\n", "1\r\na\r\n", smuggled, 1, true},
			{"before the end of chunks", "Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n", smuggled, 0, false},
			{"before the body", "Content-Length: 82\r\n", "", smuggled, 0, true},
			{"within the body", "Content-Length: 100\r\n", strings.Repeat("x", 18), smuggled, 10, false},
			{"more than a body", "Content-Length: 10\r\n", "123456789", "0" + smuggled, 9, true},
			{"large body", "Content-Length: 10000000\r\n", strings.Repeat("x", 100_000), smuggled, 10, true},
			{"HTTP/1.0", "Content-Length: 100\r\nConnection: keep-alive\r\n", strings.Repeat("x", 18), smuggled, 10, true},
			{"Expect", "Content-Length: 82\r\nExpect: 100-continue\r\n", "", smuggled, 0, true},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/early" {
						t.Errorf("the backend got %s %s", r.Method, r.URL)
					}
					_, _ = io.CopyN(io.Discard, r.Body, c.read)
					_ = http.NewResponseController(w).EnableFullDuplex()
					w.Header().Set("Connection", "close") // since this server would take the body for requests
					if c.length {
						w.Header().Set("Content-Length", "9")
					}
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, "forbidden")
				}))
				t.Cleanup(backend.Close)
				w := newWorld(t)
				r := w.start(w.config(engine, terminator.Site{Backend: terminator.Backend{To: backend.URL}}))
				conn := r.mustDial(nil)
				version := "HTTP/1.1"
				if c.name == version[:7]+"0" {
					version = c.name
				}
				write(t, conn, "POST /early "+version+"\r\n"+host+c.header+"\r\n"+c.begin)
				reader := bufio.NewReader(conn)
				resp, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if resp.StatusCode != http.StatusForbidden || !resp.Close || string(body) != "forbidden" || err != nil {
					t.Errorf("status %d, close %v, body %q, %v", resp.StatusCode, resp.Close, body, err)
				}
				_, _ = io.WriteString(conn, c.rest) // the server has closed the connection for writing only
				if more, err := io.ReadAll(reader); err != nil || len(more) > 0 {
					t.Errorf("then %q, %v", more, err)
				}
				_ = conn.Close()
				r.log.await(t, "msg=request", "path=/early", "status=403")
				if n := strings.Count(r.log.String(), "msg=request"); n != 1 {
					t.Errorf("%d requests in the log", n)
				}
			})
		}
	})
}

// TestBackendLeaves: if an HTTP/2 backend breaks a request off whose body is still being sent, the
// client is told that the backend failed, not that its request was bad.
func TestBackendLeaves(t *testing.T) {
	left := make(chan struct{}, 1)
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1))
		left <- struct{}{}
		panic(http.ErrAbortHandler)
	}))
	backend.EnableHTTP2 = true
	backend.StartTLS()
	t.Cleanup(backend.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: backend.Certificate().Raw})
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		folder := w.folder(map[string]string{"backend.pem": string(authority)})
		r := w.start(w.config(engine, terminator.Site{Backend: terminator.Backend{
			To: backend.URL, Name: "example.com", CA: filepath.Join(folder, "backend.pem")}}))
		protocols(t, func(t *testing.T, http2 bool) {
			client := r.client(http2, nil)
			for range 10 {
				body, writer := io.Pipe()
				go func() {
					_, _ = io.WriteString(writer, "begun")
					<-left
					if !http2 { // net/http's server waits for the body's end before it answers
						_ = writer.Close()
					}
				}()
				resp, err := client.Post("https://localhost/", "text/plain", body)
				if err != nil {
					t.Fatal(err)
				}
				_ = writer.Close()
				if resp.StatusCode != http.StatusBadGateway {
					t.Errorf("status %d", resp.StatusCode)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	})
}

// TestBackendsHeader: the proxy invents no type for a backend's response, which browsers would believe, and
// passes on no length of a response without a body.
func TestBackendsHeader(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		switch r.URL.Path {
		case "/204":
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\nConnection: close\r\n\r\n")
		case "/typed":
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>")
		default:
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>")
		}
	}))
	t.Cleanup(backend.Close)
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		r := w.start(w.config(engine, terminator.Site{Backend: terminator.Backend{To: backend.URL}}))
		protocols(t, func(t *testing.T, http2 bool) {
			client := r.client(http2, nil)
			for _, c := range []struct {
				method, path string
				status       int
				kind, length []string
			}{
				{"GET", "/", 200, nil, []string{"6"}}, {"HEAD", "/", 200, nil, []string{"6"}},
				{"GET", "/typed", 200, []string{"a/b"}, []string{"6"}}, {"GET", "/204", 204, nil, nil},
			} {
				request, err := http.NewRequest(c.method, "https://localhost"+c.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(request)
				if err != nil {
					t.Errorf("%+v: %v", c, err)
					continue
				}
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if h := resp.Header; err != nil || resp.StatusCode != c.status || !equal(h["Content-Type"], c.kind) ||
					!equal(h["Content-Length"], c.length) {
					t.Errorf("%+v: status %d, %v, %v", c, resp.StatusCode, h, err)
				}
			}
		})
	})
}

func equal(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }

// TestExpect: a client that waits before it sends a body hears the backend: its refusal, or 100 (Continue).
func TestExpect(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(backend.Close)
	old := listen(t) // a backend that doesn't know of Expect
	go handle(old, func(conn net.Conn) {
		if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"+string(body))
		}
	})
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct{ to, path, interim, status string }{
			{backend.URL, "/refuse", "", "401"}, {backend.URL, "/", "HTTP/1.1 100 Continue\r\n\r\n", "200"},
			{"http://" + old.Addr().String(), "/", "HTTP/1.1 100 Continue\r\n\r\n", "200"},
		} {
			w := newWorld(t)
			r := w.start(w.config(engine, terminator.Site{Backend: terminator.Backend{To: c.to}}))
			conn := r.mustDial(nil)
			write(t, conn, "PUT "+c.path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
			reader := bufio.NewReader(conn)
			if got := read(t, reader, len(c.interim)); got != c.interim {
				t.Errorf("%+v: first %q", c, got)
			}
			if c.interim != "" {
				write(t, conn, "data")
			}
			resp, err := http.ReadResponse(reader, nil)
			if err != nil || resp.Status[:3] != c.status {
				t.Errorf("%+v: %v, %v", c, resp, err)
			}
		}
	})
}
