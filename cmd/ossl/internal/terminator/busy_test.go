package terminator_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestBusy: requests wait for a connection to their backend, but not for ever.
func TestBusy(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(backend.Close)
	engines(t, func(t *testing.T, engine string) {
		t.Parallel()
		w := newWorld(t)
		config := w.config(engine, terminator.Site{Backend: terminator.Backend{To: backend.URL}})
		config.Limits.BackendConns, config.Limits.RequestsPerSource = 1, 2 // the second request waits for a connection
		config.Limits.Backend = terminator.Time(limit)
		r := w.start(config)
		conn := r.mustDial(nil)
		write(t, conn, "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
		read(t, conn, len("HTTP/1.1 100 Continue\r\n\r\n")) // it has the connection
		client := r.client(true, nil)
		if status, _ := get(t, client, "https://localhost/"); status != http.StatusServiceUnavailable {
			t.Errorf("status %d", status)
		}
		write(t, conn, "x")
		read(t, conn, len("HTTP/1.1 200 OK"))
		if status, _ := get(t, client, "https://localhost/"); status != 200 {
			t.Errorf("status %d after the other request's end", status)
		}
	})
}

// TestLongUpload: a body may take longer than a request waits for its connection.
func TestLongUpload(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	engines(t, func(t *testing.T, engine string) {
		t.Parallel()
		w := newWorld(t)
		server := func(secure, http2 bool) string {
			s := httptest.NewUnstartedServer(handler)
			t.Cleanup(s.Close)
			if !secure {
				s.Start()
				return s.URL
			}
			s.TLS = &tls.Config{Certificates: w.certificates(w.pair(false, "127.0.0.1"))}
			s.EnableHTTP2 = http2
			s.StartTLS()
			return s.URL
		}
		for name, backend := range map[string]terminator.Backend{
			"plain":  {To: server(false, false)},
			"HTTP/1": {To: server(true, false), CA: w.authority.File},
			"HTTP/2": {To: server(true, true), CA: w.authority.File},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				config := w.config(engine, terminator.Site{Backend: backend})
				config.Limits.Backend = terminator.Time(limit)
				r := w.start(config)
				client := r.client(true, nil)
				get(t, client, "https://localhost/") // makes the connection
				body, end := io.Pipe()
				go func() {
					time.Sleep(2*limit + 2*time.Second) // more than twice the time and a second
					_, _ = io.WriteString(end, "x")
					_ = end.Close()
				}()
				resp, err := client.Post("https://localhost/", "text/plain", body)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if text, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(text) != "x" || err != nil {
					t.Errorf("%s %q, %v", resp.Status, text, err)
				}
			})
		}
	})
}
