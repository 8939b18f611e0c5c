package terminator_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestOptions: a request for the server as a whole is answered, with an access line, and reaches no
// backend. Other requests for "*" are refused.
func TestOptions(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("the backend got %s %s", r.Method, r.RequestURI)
		}))
		t.Cleanup(backend.Close)
		w := newWorld(t)
		r := w.start(w.config(engine, terminator.Site{Backend: terminator.Backend{To: backend.URL}}))
		for _, c := range []struct {
			line   string
			status int
		}{{"OPTIONS *", 200}, {"GET *", 400}, {"OPTIONS *x", 400}} {
			conn := r.mustDial(nil)
			write(t, conn, c.line+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || resp.StatusCode != c.status {
				t.Fatalf("%s: %v, %v", c.line, resp, err)
			}
		}
		r.log.await(t, "msg=request", "method=OPTIONS", "path=*", "status=200")
		protocols(t, func(t *testing.T, http2 bool) {
			request, err := http.NewRequest(http.MethodOptions, "https://localhost", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.URL.Opaque = "*"
			resp, err := r.client(http2, nil).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != 200 || resp.ContentLength != 0 {
				t.Errorf("%s, length %d", resp.Status, resp.ContentLength)
			}
		})
	})
}

// TestAllow: a method that is refused is answered with those that aren't.
func TestAllow(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		for name, site := range map[string]terminator.Site{
			"files": {Root: w.folder(nil)}, "backend": {Backend: terminator.Backend{To: "http://127.0.0.1:1"}},
		} {
			r := w.start(w.config(engine, site))
			for _, method := range []string{"TRACE /", "CONNECT localhost"} {
				conn := r.mustDial(nil)
				write(t, conn, method+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || resp.StatusCode != 405 || !strings.HasPrefix(resp.Header.Get("Allow"), "GET, HEAD") {
					t.Errorf("%s, %s: %v, %v", name, method, resp, err)
				}
			}
		}
	})
}

// TestRanges: a request gets the ranges that it asks for, but not thousands of them.
func TestRanges(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		const size = 1 << 20
		r := w.start(w.config(engine, terminator.Site{Root: w.folder(map[string]string{"big": strings.Repeat("x", size)})}))
		protocols(t, func(t *testing.T, http2 bool) {
			for _, c := range []struct{ ranges, status int }{{1, 206}, {2, 206}, {100, 206}, {101, 200}, {5000, 200}} {
				var list []string
				for i := range c.ranges {
					list = append(list, fmt.Sprintf("%d-%d", 2*i, 2*i))
				}
				request, err := http.NewRequest(http.MethodGet, "https://localhost/big", nil)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Range", "bytes="+strings.Join(list, ","))
				resp, err := r.client(http2, nil).Do(request)
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != c.status || (n == size) != (c.status == 200) {
					t.Errorf("%d ranges: %s, %d bytes, %v", c.ranges, resp.Status, n, err)
				}
			}
		})
	})
}

// TestAdminWarning: the log warns of an address for administrators that others can reach.
func TestAdminWarning(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:0": false, "unix:admin": false, "0.0.0.0:0": true} {
		w := newWorld(t)
		config := w.config("ossl", terminator.Site{Root: w.folder(nil)})
		if config.Admin = address; address == "unix:admin" {
			config.Admin = "unix:" + shortFolder(t) + "/s"
		}
		if got := strings.Contains(w.start(config).log.String(), "level=WARN msg=\"admin is not on a loopback address"); got != want {
			t.Errorf("%s: warning %v", address, got)
		}
	}
}

// shortFolder returns a new folder whose path is short: the path of a socket has at most 107 bytes.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "short")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
