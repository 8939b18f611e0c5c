package terminator_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestAddressRequests: slow bodies of one address leave connections to the backend for others, and its
// own further requests wait, but not for ever.
func TestAddressRequests(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(backend.Close)
	for name, share := range map[string]int{"default": 0, "given": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			config := w.config("ossl", terminator.Site{Backend: terminator.Backend{To: backend.URL}})
			config.AcceptProxy, config.Admin = []string{"127.0.0.1"}, "127.0.0.1:0"
			config.Limits.BackendConns, config.Limits.RequestsPerSource = 4, share
			config.Limits.Backend = terminator.Time(limit)
			r := w.start(config)
			from := func(address string) *tls.Conn {
				raw, err := net.Dial("tcp", r.addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = raw.Close() })
				_ = raw.SetDeadline(time.Now().Add(patience))
				write(t, raw, "PROXY TCP4 "+address+" 192.0.2.9 1 2\r\n")
				return tls.Client(raw, &tls.Config{RootCAs: w.roots, ServerName: "localhost"})
			}
			const head = "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"
			var slow []*tls.Conn
			for range 2 { // half of the connections
				conn := from("192.0.2.1")
				write(t, conn, head)
				read(t, conn, len("HTTP/1.1 100 Continue\r\n\r\n")) // the backend has it
				slow = append(slow, conn)
			}
			late := from("192.0.2.1")
			write(t, late, head)
			if got := read(t, late, len("HTTP/1.1 503")); got != "HTTP/1.1 503" {
				t.Errorf("a further request of the same address: %q", got)
			}
			_ = late.Close() // net/http waits for its body
			waits, elsewhere := from("192.0.2.1"), from("192.0.2.2")
			write(t, elsewhere, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if got := read(t, elsewhere, len("HTTP/1.1 200")); got != "HTTP/1.1 200" {
				t.Errorf("another address: %q", got)
			}
			write(t, waits, head)
			_, admin := r.Addrs()
			t.Cleanup(http.DefaultClient.CloseIdleConnections)
			for late := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
				_, body := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics")
				if strings.Contains(body, "\nossl_serve_limited_requests_total{limit=\"address-requests\"} 2\n") {
					break
				}
				if time.Now().After(late) {
					t.Fatal("the metric isn't 2")
				}
			}
			r.log.await(t, "msg=limit", "limit=address-requests", "client=192.0.2.1:1")
			write(t, slow[0], "x") // its request is complete
			if got := read(t, waits, len("HTTP/1.1 100")); got != "HTTP/1.1 100" {
				t.Errorf("after another request's end: %q", got)
			}
			gone := from("192.0.2.1")
			write(t, gone, head)
			_ = gone.Close() // a client that leaves doesn't keep a place
			for _, conn := range []*tls.Conn{slow[1], waits} {
				write(t, conn, "x")
				read(t, conn, len("HTTP/1.1 200"))
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if cut := r.Drain(ctx); cut != 0 {
				t.Errorf("%d connections were cut off", cut)
			}
		})
	}
}
