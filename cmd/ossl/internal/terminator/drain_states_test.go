package terminator_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestDrainStates: the end of a server in states of connections that last until they are cut off.
// TestDrain has handshakes, requests and idle connections, TestCutAtEnd uploads and answers.
func TestDrainStates(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		for _, c := range []struct {
			name   string
			http   bool
			change func(*terminator.Config)
			// prepare brings a connection into the state, and returns it.
			prepare func(t *testing.T, r *running, backend net.Listener) net.Conn
		}{
			{"PROXY header", false, func(c *terminator.Config) { c.AcceptProxy = []string{"127.0.0.1"} },
				func(t *testing.T, r *running, _ net.Listener) net.Conn {
					conn := r.rawDial(t)
					write(t, conn, "PROXY TCP4 ")
					return conn
				}},
			{"handshake of TCP", false, nil, func(t *testing.T, r *running, backend net.Listener) net.Conn {
				conn := r.rawDial(t)
				write(t, conn, "\x16\x03\x01")
				r.mustDial(nil) // accepted after conn
				_ = accept(t, backend).Close()
				return conn
			}},
			{"header", true, nil, func(t *testing.T, r *running, _ net.Listener) net.Conn {
				conn := r.mustDial(nil)
				write(t, conn, "GET / HTTP/1.1\r\nHost: local")
				return conn
			}},
			{"body", true, nil, func(t *testing.T, r *running, backend net.Listener) net.Conn {
				conn := r.mustDial(nil)
				write(t, conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf")
				if _, err := http.ReadRequest(bufio.NewReader(accept(t, backend))); err != nil {
					t.Fatal(err)
				}
				return conn
			}},
			{"response", true, nil, func(t *testing.T, r *running, backend net.Listener) net.Conn {
				conn := r.mustDial(nil)
				write(t, conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
				write(t, accept(t, backend), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
				read(t, conn, len("HTTP/1.1 200 OK"))
				return conn
			}},
			{"upgraded", true, nil, func(t *testing.T, r *running, backend net.Listener) net.Conn {
				conn := r.mustDial(nil)
				write(t, conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				write(t, accept(t, backend), "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				read(t, conn, len("HTTP/1.1 101"))
				return conn
			}},
			{"waiting for the backend's connection", true, func(c *terminator.Config) {
				c.Limits.BackendConns, c.Limits.RequestsPerSource = 1, 9
			}, waitingRequest},
			{"waiting for the address's requests", true, func(c *terminator.Config) { c.Limits.RequestsPerSource = 1 }, waitingRequest},
			{"handshake with the backend", false, func(c *terminator.Config) { c.Sites[0].Backend.To = "tls://" + c.Sites[0].Backend.To },
				func(t *testing.T, r *running, backend net.Listener) net.Conn {
					conn := r.mustDial(nil)
					read(t, accept(t, backend), 1)
					return conn
				}},
			{"relay from the client", false, nil, func(t *testing.T, r *running, backend net.Listener) net.Conn {
				conn := r.mustDial(nil)
				_ = accept(t, backend).(*net.TCPConn).CloseWrite()
				_, _ = io.ReadAll(conn)
				write(t, conn, "x")
				return conn
			}},
			{"relay from the backend", false, nil, func(t *testing.T, r *running, backend net.Listener) net.Conn {
				conn := r.mustDial(nil)
				behind := accept(t, backend)
				_ = conn.CloseWrite()
				_, _ = io.ReadAll(behind)
				write(t, behind, "x")
				read(t, conn, 1)
				return conn
			}},
			{"waiting for the rate", false, func(c *terminator.Config) { c.Limits.Rate = 0.001 },
				func(t *testing.T, r *running, backend net.Listener) net.Conn {
					conn := r.mustDial(nil)
					accept(t, backend)
					r.rawDial(t) // nobody has accepted it
					return conn
				}},
		} {
			t.Run(c.name, func(t *testing.T) {
				w, backend := newWorld(t), listen(t)
				site := tcp(backend.Addr().String())
				if c.http {
					site.Backend.To = "http://" + site.Backend.To
				}
				config := w.config(engine, site)
				if c.change != nil {
					c.change(config)
				}
				r := w.start(config)
				conn := c.prepare(t, r, backend)
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				done := make(chan struct{})
				go func() {
					r.Drain(ctx)
					close(done)
				}()
				select {
				case <-done:
				case <-time.After(patience):
					t.Fatal("the server doesn't end")
				}
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the connection is left")
				}
			})
		}
	})
}

// rawDial makes a connection without TLS.
func (r *running) rawDial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", r.addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// waitingRequest makes two requests, of which the second one waits.
func waitingRequest(t *testing.T, r *running, backend net.Listener) net.Conn {
	const request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
	first, second := r.mustDial(nil), r.mustDial(func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} })
	write(t, first, request)
	accept(t, backend)
	write(t, second, request)
	return second
}
