package terminator_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// kept makes a connection, and sends a request on it.
func (r *running) kept(t *testing.T, path string) net.Conn {
	conn := r.mustDial(nil)
	write(t, conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	return conn
}

// idlers make connections that have no request under way.
var idlers = map[string]func(t *testing.T, r *running) net.Conn{
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
		conn := r.kept(t, "/")
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
}

// TestFull: clients that are idle or half open don't lock others out of a full server. Those with a request
// under way keep their places. Logs what nginx does, if it is installed.
func TestFull(t *testing.T) {
	const places = 10
	for name, fill := range idlers {
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
			busy := r.kept(t, "/wait") // the oldest one
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
	t.Run("nginx", func(t *testing.T) {
		for name, fill := range idlers {
			backend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			t.Cleanup(backend.Close)
			// A listener, the channel to the other process, and a connection to the backend take places, too.
			r := beside(t, newWorld(t), fmt.Sprintf("worker_connections %d;", places+3), backend.URL)
			var idle []net.Conn
			for range places {
				idle = append(idle, fill(t, r))
			}
			answers, lost := 0, 0
			for range 3 {
				if resp, err := r.client(false, nil).Get("https://localhost/"); err == nil {
					_ = resp.Body.Close()
					answers++
				}
			}
			for _, conn := range idle {
				_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) {
					lost++
				}
			}
			t.Logf("nginx, %s: %d of 3 further clients are answered, %d of %d lose their places", name, answers, lost, places)
		}
	})
}
