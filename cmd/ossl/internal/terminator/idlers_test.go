package terminator_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestFull: clients that are idle or half open don't lock others out of a full server. Those with a request
// under way keep their places.
func TestFull(t *testing.T) {
	const places = 10
	kept := func(t *testing.T, r *running, path string) net.Conn {
		conn := r.mustDial(nil)
		write(t, conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		return conn
	}
	for name, fill := range map[string]func(t *testing.T, r *running) net.Conn{
		"TCP": func(t *testing.T, r *running) net.Conn {
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		},
		"handshake": func(t *testing.T, r *running) net.Conn { return r.mustDial(nil) },
		"kept": func(t *testing.T, r *running) net.Conn {
			conn := kept(t, r, "/")
			if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
				t.Fatal(err)
			}
			return conn
		},
		"half a header": func(t *testing.T, r *running) net.Conn {
			conn := r.mustDial(nil)
			write(t, conn, "GET / HTTP/1.1\r\nHost: loc")
			return conn
		},
		"HTTP/2": func(t *testing.T, r *running) net.Conn {
			conn := r.mustDial(func(config *tls.Config) { config.NextProtos = []string{"h2"} })
			write(t, conn, http2.ClientPreface)
			framer := http2.NewFramer(conn, conn)
			if err := framer.WriteSettings(); err != nil {
				t.Fatal(err)
			}
			if err := writeRequest(t, framer, 1, "/", nil); err != nil {
				t.Fatal(err)
			}
			for {
				frame, err := framer.ReadFrame()
				if err != nil {
					t.Fatal(err)
				}
				if frame.Header().StreamID == 1 {
					return conn
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finish := make(chan struct{})
			waiting := make(chan struct{}, 1)
			backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/wait" {
					waiting <- struct{}{}
					<-finish
				}
			}))
			t.Cleanup(backend.Close)
			w := newWorld(t)
			c := w.config("ossl", terminator.Site{Backend: terminator.Backend{To: backend.URL}})
			c.Limits.Connections, c.Limits.Header, c.Limits.Idle = places, terminator.Time(time.Hour), terminator.Time(time.Hour)
			r := w.start(c)
			busy := kept(t, r, "/wait") // the oldest one
			<-waiting
			var idle []net.Conn
			for range places - 1 {
				idle = append(idle, fill(t, r))
			}
			for range 3 { // each takes the place of the one that is idle longest
				if status, _ := get(t, r.client(false, nil), "https://localhost/"); status != http.StatusOK {
					t.Errorf("status %d", status)
				}
			}
			_ = idle[0].SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, idle[0]); err != nil {
				if e, ok := err.(net.Error); ok && e.Timeout() {
					t.Error("the first one is still there")
				}
			}
			r.log.await(t, "limit=idle")
			close(finish)
			resp, err := http.ReadResponse(bufio.NewReader(busy), nil)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("the request under way: %v, %v", resp, err)
			}
		})
	}
}
