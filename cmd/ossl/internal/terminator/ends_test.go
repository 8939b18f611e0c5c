package terminator_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestOrdinaryEnds: an HTTP client may close its connection without close_notify, or with a reset,
// when it has its response. That is no failure of the connection; the same within a request or a
// response is.
func TestOrdinaryEnds(t *testing.T) {
	w := newWorld(t)
	c := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"small": "x", "big": strings.Repeat("x", 32<<20)})})
	c.Admin = "127.0.0.1:0"
	r := w.start(c)
	_, admin := r.Addrs()
	// broken returns the connections that failed during f, when all are closed.
	broken := func(f func()) (n uint64) {
		sum := func() (n uint64) {
			for _, s := range ossl.ProcessStats().Broken {
				if s.Server {
					n += s.Count
				}
			}
			return n
		}
		before := sum()
		f()
		for late := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
			_, body := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics")
			if strings.Contains(body, "\nossl_serve_connections 0\n") {
				return sum() - before
			}
			if time.Now().After(late) {
				t.Fatal("a connection doesn't end")
			}
		}
	}
	defer http.DefaultClient.CloseIdleConnections()
	ends := map[string]func(conn *tls.Conn){
		"close_notify":             func(conn *tls.Conn) { _ = conn.Close() },
		"no close_notify":          func(conn *tls.Conn) { _ = conn.NetConn().Close() },
		"reset":                    func(conn *tls.Conn) { resetNow(conn.NetConn()) },
		"close_notify, then reset": func(conn *tls.Conn) { _ = conn.CloseWrite(); resetNow(conn.NetConn()) },
	}
	protocols(t, func(t *testing.T, http2 bool) {
		// visit makes a request, and calls leave with the connection when the response has begun.
		visit := func(path string, body io.Reader, leave func(*http.Response, *tls.Conn)) {
			transport := r.client(http2, nil).Transport.(*http.Transport)
			var conn *tls.Conn
			transport.DialTLSContext = func(context.Context, string, string) (net.Conn, error) {
				var err error
				conn, err = r.dial(func(config *tls.Config) {
					if config.NextProtos = []string{"http/1.1"}; http2 {
						config.NextProtos = []string{"h2"}
					}
				})
				return conn, err
			}
			request, err := http.NewRequest(http.MethodGet, "https://localhost/"+path, body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			leave(resp, conn)
			_ = resp.Body.Close()
			transport.CloseIdleConnections()
		}
		for name, end := range ends {
			n := uint64(1)
			// The response may arrive before net/http, with HTTP/2, knows that it has been sent.
			for try := 0; try < 5 && n > 0; try++ {
				n = broken(func() {
					visit("small", nil, func(resp *http.Response, conn *tls.Conn) {
						if _, err := io.ReadAll(resp.Body); err != nil {
							t.Error(err)
						}
						end(conn)
					})
				})
			}
			if n > 0 {
				t.Errorf("%s: a connection that was idle counts as broken", name)
			}
			if strings.HasPrefix(name, "close_notify") { // the client has announced that it leaves
				continue
			}
			if n := broken(func() { visit("big", nil, func(_ *http.Response, conn *tls.Conn) { end(conn) }) }); n != 1 {
				t.Errorf("%s within a response: %d connections count as broken", name, n)
			}
		}
	})
	if n := broken(func() {
		conn := r.mustDial(nil)
		write(t, conn, "GET /small HTTP/1.1\r\nHost: loc")
		_ = conn.NetConn().Close()
	}); n != 1 {
		t.Errorf("the end within a request: %d connections count as broken", n)
	}
	url := fmt.Sprintf("https://localhost:%d/small", r.port())
	for _, program := range [][]string{
		{"curl", "-sS", "--http2"}, {"curl", "-sS", "--http1.1"}, {"wget", "-qO-"},
	} {
		path, err := exec.LookPath(program[0])
		if err != nil {
			t.Logf("%s is not installed", program[0])
			continue
		}
		option := "--cacert"
		if program[0] == "wget" {
			option = "--ca-certificate"
		}
		n := uint64(1)
		for try := 0; try < 5 && n > 0; try++ {
			n = broken(func() {
				arguments := append(program[1:], option, filepath.Join(w.dir, "ca", "ca.pem"), url)
				if out, err := exec.Command(path, arguments...).CombinedOutput(); err != nil || string(out) != "x" {
					t.Fatalf("%s: %q, %v", program, out, err)
				}
			})
		}
		if n > 0 {
			t.Errorf("%s: its connection counts as broken", program)
		}
	}
}

// resetNow closes a TCP connection with an RST.
func resetNow(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func (r *running) port() int {
	addresses, _ := r.Addrs()
	return addresses[0].(*net.TCPAddr).Port
}
