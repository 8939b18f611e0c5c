package terminator_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestHeaders: the fields that a site sets and removes are in all of its responses.
func TestHeaders(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "backend")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(backend.Close)
	const hsts = "Strict-Transport-Security: max-age=31536000"
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		for name, site := range map[string]terminator.Site{
			"files":   {Root: w.folder(map[string]string{"a": "a"})},
			"backend": {Backend: terminator.Backend{To: backend.URL}},
			"none":    {Backend: terminator.Backend{To: "http://127.0.0.1:1"}},
		} {
			site.Headers = []string{hsts, "x-two:1", "X-Two: 2", "cache-control: max-age=60"}
			site.RemoveHeaders = []string{"server", "X-Content-Type-Options"}
			r := w.start(w.config(engine, site))
			protocols(t, func(t *testing.T, http2 bool) {
				for _, path := range []string{"/a", "/none", "/"} {
					resp, err := r.client(http2, nil).Get("https://localhost" + path)
					if err != nil {
						t.Fatal(err)
					}
					_ = resp.Body.Close()
					h := resp.Header
					if h.Get("Strict-Transport-Security") != "max-age=31536000" || !equal(h["X-Two"], []string{"1", "2"}) ||
						!equal(h["Cache-Control"], []string{"max-age=60"}) || h["Server"] != nil || h["X-Content-Type-Options"] != nil {
						t.Errorf("%s %s: %d %v", name, path, resp.StatusCode, h)
					}
				}
			})
		}
		for _, bad := range []terminator.Site{
			{Headers: []string{"no colon"}}, {Headers: []string{"a b: c"}}, {Headers: []string{"a: b\r\nc: d"}},
			{Headers: []string{": b"}},
			{Headers: []string{"Content-Length: 1"}}, {RemoveHeaders: []string{"date"}}, {RemoveHeaders: []string{"a:b"}},
			{Headers: []string{"A: 1"}, RemoveHeaders: []string{"a"}}, {Headers: []string{"connection: close"}},
		} {
			bad.Root = w.folder(nil)
			if err := w.config(engine, bad).Check(); err == nil || !strings.Contains(err.Error(), "header") {
				t.Errorf("%q %q: %v", bad.Headers, bad.RemoveHeaders, err)
			}
		}
		relayed := terminator.Site{Headers: []string{hsts}, Backend: terminator.Backend{To: "127.0.0.1:1"}}
		if err := w.config(engine, relayed).Check(); err == nil {
			t.Error("a site of TCP has headers")
		}
	})
}

// TestBodyBytes: a request's body above the limit is refused: before the backend hears of it, if its length
// is known. Over HTTP/2 the connection goes on.
func TestBodyBytes(t *testing.T) {
	const most = 1000
	got := make(chan int, 10)
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			got <- len(body)
		}
	}))
	t.Cleanup(backend.Close)
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		c := w.config(engine, terminator.Site{Backend: terminator.Backend{To: backend.URL}})
		c.Limits.BodyBytes = most
		r := w.start(c)
		protocols(t, func(t *testing.T, http2 bool) {
			client, dialed := r.client(http2, nil), 0
			trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
				if !info.Reused {
					dialed++
				}
			}})
			for _, length := range []int{0, most, most + 1, 100 * most} {
				for _, known := range []bool{true, false} {
					var body io.Reader = strings.NewReader(strings.Repeat("x", length))
					if !known {
						body = io.MultiReader(body)
					}
					request, err := http.NewRequestWithContext(trace, http.MethodPost, "https://localhost/", body)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := client.Do(request)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					want := map[bool]int{true: 200, false: 413}[length <= most]
					if resp.StatusCode != want {
						t.Errorf("%d bytes, known %v: status %d", length, known, resp.StatusCode)
					}
					if want == 200 {
						if n := <-got; n != length {
							t.Errorf("the backend got %d of %d bytes", n, length)
						}
					} else if known {
						select {
						case n := <-got:
							t.Errorf("the backend got %d bytes", n)
						default:
						}
					}
				}
			}
			if http2 && dialed != 1 {
				t.Errorf("%d connections", dialed)
			}
		})
	})
}

// TestPrecompressed: a client gets the file in the encoding that it likes best, of those that are there.
func TestPrecompressed(t *testing.T) {
	w := newWorld(t)
	folder := w.folder(map[string]string{"a.js": "plain", "a.js.br": "brotli", "a.js.gz": "gzip", "a.js.zst": "zstd",
		"b.html": "plain b", "b.html.gz": "gzip b", "old.txt": "plain old", "old.txt.gz": "gzip old",
		"sub/index.html": "index", "sub/index.html.br": "brotli index", "lone.txt.gz": "gzip lone", "c.txt": "plain c"})
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "c.txt.gz")); err != nil {
		t.Skip(err)
	}
	earlier := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(folder, "old.txt.gz"), earlier, earlier); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []int{0, 1 << 20} {
		c := w.config("ossl", terminator.Site{Root: folder, Precompressed: true})
		c.Limits.FileCacheBytes = cache
		r := w.start(c)
		client := r.client(false, nil)
		client.Transport.(*http.Transport).DisableCompression = true
		for range 2 {
			for _, test := range []struct{ path, accept, encoding, body, kind string }{
				{"/a.js", "", "", "plain", "text/javascript; charset=utf-8"},
				{"/a.js", "gzip, deflate, br, zstd", "br", "brotli", "text/javascript; charset=utf-8"},
				{"/a.js", "gzip;q=1, br;q=0.5", "gzip", "gzip", "text/javascript; charset=utf-8"},
				{"/a.js", "br;q=0, *", "zstd", "zstd", "text/javascript; charset=utf-8"},
				{"/a.js", "X-GZIP", "gzip", "gzip", "text/javascript; charset=utf-8"},
				{"/a.js", "gzip;q=0.1, identity", "", "plain", "text/javascript; charset=utf-8"},
				{"/a.js", "*;q=0", "", "plain", "text/javascript; charset=utf-8"},
				{"/a.js", "gzip;q=x", "", "plain", "text/javascript; charset=utf-8"},
				{"/a.js.gz", "gzip", "", "gzip", "application/gzip"},
				{"/b.html", "br, gzip", "gzip", "gzip b", "text/html; charset=utf-8"},
				{"/old.txt", "gzip", "", "plain old", "text/plain; charset=utf-8"},
				{"/sub/", "br", "br", "brotli index", "text/html; charset=utf-8"},
				{"/c.txt", "gzip", "", "plain c", "text/plain; charset=utf-8"},
			} {
				request, err := http.NewRequest(http.MethodGet, "https://localhost"+test.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if test.accept != "" {
					request.Header.Set("Accept-Encoding", test.accept)
				}
				resp, err := client.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				h := resp.Header
				if err != nil || string(body) != test.body || h.Get("Content-Encoding") != test.encoding ||
					h.Get("Content-Type") != test.kind || h.Get("Vary") != "Accept-Encoding" {
					t.Errorf("%s for %q: %q %v, %v", test.path, test.accept, body, h, err)
				}
				request.Header.Set("If-None-Match", h.Get("Etag"))
				if resp, err := client.Do(request); err != nil || resp.StatusCode != http.StatusNotModified {
					t.Errorf("%s for %q, again: %v, %v", test.path, test.accept, resp, err)
				}
				request.Header.Set("Accept-Encoding", "identity")
				if resp, err := client.Do(request); err != nil || (resp.StatusCode == http.StatusNotModified) != (test.encoding == "") {
					t.Errorf("%s without encoding, with the tag of %q: %v, %v", test.path, test.encoding, resp, err)
				}
			}
		}
		if status, _ := get(t, client, "https://localhost/lone.txt"); status != http.StatusNotFound {
			t.Errorf("a compressed file without a plain one: %s", fmt.Sprint(status))
		}
	}
}
