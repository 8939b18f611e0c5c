package terminator_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestDrain: a server shuts down in several states of its connections.
func TestDrain(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct {
			name string
			cut  int
			// prepare brings a connection into a state; finish closes it regularly, or is nil.
			prepare func(t *testing.T, r *running, started, goOn chan struct{}) (finish func())
		}{
			{"nothing", 0, func(*testing.T, *running, chan struct{}, chan struct{}) func() { return nil }},
			{"idle", 0, func(t *testing.T, r *running, _, _ chan struct{}) func() {
				get(t, r.client(false, nil), "https://localhost/quick")
				get(t, r.client(true, nil), "https://localhost/quick")
				return nil
			}},
			{"requests", 0, func(t *testing.T, r *running, started, goOn chan struct{}) func() {
				done := make(chan string, 2)
				for _, http2 := range []bool{false, true} {
					client := r.client(http2, nil)
					go func() {
						resp, err := client.Get("https://localhost/slow")
						if err != nil {
							done <- err.Error()
							return
						}
						body, _ := io.ReadAll(resp.Body)
						done <- string(body)
					}()
					<-started
				}
				return func() {
					close(goOn)
					for range 2 {
						if got := <-done; got != "slow" {
							t.Errorf("a request under way ended with %q", got)
						}
					}
				}
			}},
			{"handshake", 1, func(t *testing.T, r *running, _, _ chan struct{}) func() {
				conn, err := net.Dial("tcp", r.addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				_, _ = io.WriteString(conn, "\x16\x03\x01")
				get(t, r.client(false, nil), "https://localhost/quick") // accepted after conn
				return nil
			}},
			{"request that doesn't end", 1, func(t *testing.T, r *running, started, _ chan struct{}) func() {
				client := r.client(true, nil)
				go func() {
					if resp, err := client.Get("https://localhost/slow"); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
					}
				}()
				<-started
				return nil
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				started, goOn := make(chan struct{}), make(chan struct{})
				backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/slow" {
						started <- struct{}{}
						select {
						case <-goOn:
						case <-r.Context().Done():
						}
						fmt.Fprint(w, "slow")
					}
				}))
				t.Cleanup(backend.Close)
				w := newWorld(t)
				r := w.start(w.config(engine, terminator.Site{Backend: terminator.Backend{To: backend.URL}}))
				finish := c.prepare(t, r, started, goOn)
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				done, begun := make(chan int, 1), time.Now()
				go func() { done <- r.Drain(ctx) }()
				if finish != nil {
					finish()
				}
				if c.cut > 0 { // the others must be closed, and these have had some time
					for r.Places() > c.cut && ctx.Err() == nil || time.Since(begun) < 300*time.Millisecond {
						<-time.After(10 * time.Millisecond)
					}
					cancel()
				}
				if cut := <-done; cut != c.cut {
					t.Errorf("%d connections were cut off, want %d", cut, c.cut)
				}
				if conn, err := net.Dial("tcp", r.addr); err == nil {
					_ = conn.Close()
					t.Error("the port is still open")
				}
			})
		}
	})
}

// TestDrainAdmin: a server that shuts down answers a request of the administrator's that is under
// way.
func TestDrainAdmin(t *testing.T) {
	w := newWorld(t)
	config := w.config("ossl", terminator.Site{Root: w.folder(nil)})
	config.Admin = "127.0.0.1:0"
	r := w.start(config)
	_, admin := r.Addrs()
	conn, err := net.Dial("tcp", admin.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\n")
	get(t, http.DefaultClient, "http://"+admin.String()+"/healthz") // accepted after conn
	done := make(chan int, 1)
	go func() { done <- r.Drain(context.Background()) }()
	for {
		other, err := net.Dial("tcp", admin.String())
		if err != nil {
			break // the server has closed its listener, and waits for its requests
		}
		_ = other.Close()
	}
	_, _ = io.WriteString(conn, "Host: localhost\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Error(resp.Status)
	}
	<-done
}
