package terminator_test

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestReverse: requests reach HTTP backends with the right headers, and their failures have statuses.
func TestReverse(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		fmt.Fprintf(w, "%s %s %s|%s|%s|%s|%s", r.Method, r.Host, r.URL, h.Get("X-Forwarded-Proto"), h.Get("X-Forwarded-Host"),
			h.Get("X-Forwarded-For"), h.Get("Forwarded"))
	})
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		plain := httptest.NewServer(handler)
		t.Cleanup(plain.Close)
		secure := httptest.NewUnstartedServer(handler)
		secure.TLS = &tls.Config{Certificates: w.certificates(w.pair(false, "backend.test"))}
		secure.EnableHTTP2 = true
		secure.StartTLS()
		t.Cleanup(secure.Close)
		path := filepath.Join(shortFolder(t), "s")
		socket, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		unix := &httptest.Server{Listener: socket, Config: &http.Server{Handler: handler}}
		unix.Start()
		t.Cleanup(unix.Close)
		silent := listen(t)
		for _, c := range []struct {
			name    string
			backend terminator.Backend
			status  int
		}{
			{"http", terminator.Backend{To: plain.URL}, 200},
			{"https", terminator.Backend{To: "https://" + secure.Listener.Addr().String(), Name: "backend.test",
				CA: w.authority.File}, 200},
			{"unix", terminator.Backend{To: "http+unix:" + path}, 200},
			{"down", terminator.Backend{To: "http://127.0.0.1:1"}, 502},
			{"untrusted", terminator.Backend{To: "https://" + secure.Listener.Addr().String(), Name: "backend.test"}, 502},
			{"silent", terminator.Backend{To: "http://" + silent.Addr().String()}, 504},
		} {
			t.Run(c.name, func(t *testing.T) {
				config := w.config(engine, terminator.Site{Backend: c.backend})
				if c.status == 504 {
					config.Limits.Backend = terminator.Time(300 * time.Millisecond)
				}
				r := w.start(config)
				protocols(t, func(t *testing.T, http2 bool) {
					req, err := http.NewRequest("GET", "https://localhost/a%2Fb?c=d", nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded"} {
						req.Header.Set(name, "forged")
					}
					resp, err := r.client(http2, nil).Do(req)
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(resp.Body)
					if err != nil || resp.StatusCode != c.status {
						t.Fatalf("%s %q, %v, want status %d", resp.Status, body, err, c.status)
					}
					if want := "GET localhost /a%2Fb?c=d|https|localhost|127.0.0.1|"; c.status == 200 && string(body) != want {
						t.Errorf("the backend got %q, want %q", body, want)
					}
				})
			})
		}
	})
}

// TestClientCert: the backend gets the certificate of a client as RFC 9440 has it, of one that
// resumes a session too, and nothing that a client sends instead.
func TestClientCert(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q %q", r.Header.Values("Client-Cert"), r.Header.Values("Client-Cert-Chain"))
	}))
	t.Cleanup(backend.Close)
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		site := terminator.Site{Backend: terminator.Backend{To: backend.URL}}
		site.ClientCA, site.ClientOptional = []string{w.authority.File}, true
		silent := w.start(w.config(engine, site))
		site.Backend.ClientCert = true
		speaking := w.start(w.config(engine, site))
		identity := w.certificates(w.pair(true, "alice"))
		header := fmt.Sprintf("[%q]", ":"+base64.StdEncoding.EncodeToString(identity[0].Certificate[0])+":")
		for _, c := range []struct {
			name     string
			server   *running
			identity []tls.Certificate
			want     string
		}{
			{"a certificate", speaking, identity, header},
			{"no certificate", speaking, nil, "[]"},
			{"off", silent, identity, "[]"},
		} {
			t.Run(c.name, func(t *testing.T) {
				protocols(t, func(t *testing.T, http2 bool) {
					sessions := tls.NewLRUClientSessionCache(0)
					for i := range 2 {
						client := c.server.client(http2, func(config *tls.Config) {
							config.Certificates, config.ClientSessionCache = c.identity, sessions
						})
						req, err := http.NewRequest("GET", "https://localhost/", nil)
						if err != nil {
							t.Fatal(err)
						}
						req.Header.Set("Client-Cert", ":Zm9yZ2Vk:")
						req.Header.Set("Client-Cert-Chain", ":Zm9yZ2Vk:")
						resp, err := client.Do(req)
						if err != nil {
							t.Fatal(err)
						}
						body, err := io.ReadAll(resp.Body)
						if want := c.want + " []"; err != nil || string(body) != want {
							t.Errorf("the backend got %q, want %q, %v", body, want, err)
						}
						if resp.TLS.DidResume != (i == 1) {
							t.Errorf("connection %d: resumed is %t", i, resp.TLS.DidResume)
						}
						client.CloseIdleConnections()
					}
				})
			})
		}
	})
}

// TestUpgrade: a connection that is upgraded to another protocol passes data in both directions, and
// its place is free afterwards.
func TestUpgrade(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.CopyN(conn, rw, 5)
	}))
	t.Cleanup(backend.Close)
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		config := w.config(engine, terminator.Site{Backend: terminator.Backend{To: backend.URL}})
		config.Limits.Connections = 1
		r := w.start(config)
		for range 2 { // the second connection needs the place of the first one
			conn := r.mustDial(nil)
			write(t, conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			reader := bufio.NewReader(conn)
			resp, err := http.ReadResponse(reader, nil)
			if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("%v, %v", resp, err)
			}
			write(t, conn, "hello")
			if got := read(t, reader, 5); got != "hello" {
				t.Errorf("got %q", got)
			}
			_, _ = io.ReadAll(reader)
			_ = conn.Close()
		}
		r.log.await(t, "status=101")
	})
}

// TestSites: sites are chosen by the server name, and a request for another site than the
// connection's is refused.
func TestSites(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		site := func(text string, names ...string) terminator.Site {
			return terminator.Site{Names: names, Root: w.folder(map[string]string{"index.html": text}),
				Pairs: []terminator.Pair{w.pair(false, names...)}}
		}
		a, b := site("a", "a.test", "www.a.test"), site("b", "*.b.test")
		b.ClientCA = []string{w.authority.File}
		config := w.config(engine, a)
		config.Sites = []terminator.Site{a, b}
		r := w.start(config)
		identity := w.certificates(w.pair(true, "alice"))
		protocols(t, func(t *testing.T, http2 bool) {
			for _, c := range []struct {
				name, sni, host string
				certificate     bool
				status          int // 0 if the handshake or the request fails
				body            string
			}{
				{"first", "a.test", "a.test", false, 200, "a"},
				{"other name", "www.a.test", "a.test", false, 200, "a"},
				{"upper case", "a.test", "WWW.A.test:443", false, 200, "a"},
				{"wildcard", "x.b.test", "x.b.test", true, 200, "b"},
				{"wildcard, other label", "x.b.test", "y.b.test", true, 200, "b"},
				{"no certificate", "x.b.test", "x.b.test", false, 0, ""},
				{"fronted", "a.test", "x.b.test", false, 421, ""},
				{"unknown host", "a.test", "c.test", false, 421, ""},
				{"address as host", "a.test", "127.0.0.1", false, 421, ""},
				{"two labels", "x.y.b.test", "x.y.b.test", true, 0, ""},
				{"unknown name", "c.test", "c.test", false, 0, ""},
			} {
				t.Run(c.name, func(t *testing.T) {
					client := r.client(http2, func(config *tls.Config) {
						config.ServerName = c.sni
						if c.certificate {
							config.Certificates = identity
						}
					})
					req, err := http.NewRequest("GET", "https://localhost/", nil)
					if err != nil {
						t.Fatal(err)
					}
					req.Host = c.host
					resp, err := client.Do(req)
					if err != nil {
						if c.status != 0 {
							t.Fatal(err)
						}
						return
					}
					body, _ := io.ReadAll(resp.Body)
					if resp.StatusCode != c.status || c.status == 200 && string(body) != c.body {
						t.Errorf("%d %q, want %d %q", resp.StatusCode, body, c.status, c.body)
					}
					if c.certificate {
						r.log.await(t, "msg=request", "host="+c.host, `certificate="CN=alice,O=ossl development certificate"`)
					}
				})
			}
		})
		if _, err := r.dial(func(config *tls.Config) { config.ServerName = ""; config.InsecureSkipVerify = true }); err == nil {
			t.Error("a client without a name was accepted")
		}
	})
}
