package terminator_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestFiles: the paths that a site of files serves, and those that it refuses.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	outside := w.folder(map[string]string{"secret": "secret"})
	root := w.folder(map[string]string{"index.html": "index", "file.txt": "text", "sub/index.html": "sub index",
		"bare/file": "x", ".git/config": "hidden", "sub/.env": "hidden", ".well-known/x": "known"})
	links := map[string]string{"out": outside, "out-file": filepath.Join(outside, "secret"), "up": "../..", "in": "file.txt"}
	for link, to := range links {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	site := terminator.Site{Root: root}
	engines(t, func(t *testing.T, engine string) {
		r := w.start(w.config(engine, site))
		protocols(t, func(t *testing.T, http2 bool) {
			client := r.client(http2, nil)
			for _, c := range []struct {
				path   string
				status int
				body   string
			}{
				{"/", 200, "index"},
				{"/file.txt", 200, "text"},
				{"/sub/", 200, "sub index"},
				{"/in", 200, "text"},
				{"/.well-known/x", 200, "known"},
				{"/sub", 301, ""},
				{"/none", 404, ""},
				{"/bare/", 404, ""},
				{"/.git/config", 404, ""},
				{"/sub/.env", 404, ""},
				{"/out/secret", 404, ""},
				{"/out-file", 404, ""},
				{"/up/etc/passwd", 404, ""},
				{"/../../etc/passwd", 404, ""},
				{"/%2e%2e/%2e%2e/etc/passwd", 404, ""},
				{"/..%2f..%2fetc%2fpasswd", 404, ""},
				{"/sub/..%5c..%5csecret", 404, ""},
				{"/file.txt%00.html", 404, ""},
			} {
				status, body := get(t, client, "https://localhost"+c.path)
				if status != c.status || c.status == 200 && body != c.body {
					t.Errorf("%s: %d %q, want %d %q", c.path, status, body, c.status, c.body)
				}
			}
			resp, err := client.Post("https://localhost/file.txt", "text/plain", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("POST: %s", resp.Status)
			}
			resp, err = client.Head("https://localhost/file.txt")
			if err != nil || resp.StatusCode != 200 || resp.ContentLength != 4 {
				t.Errorf("HEAD: %v, %v", resp, err)
			}
		})
		if strings.Contains(r.log.String(), "panic") {
			t.Error("a panic")
		}
	})
}

// TestListing: folders are listed only on request, without hidden files.
func TestListing(t *testing.T) {
	w := newWorld(t)
	site := terminator.Site{Root: w.folder(map[string]string{"a.txt": "x", ".hidden": "x"}), List: true}
	r := w.start(w.config("ossl", site))
	status, body := get(t, r.client(true, nil), "https://localhost/")
	if status != 200 || !strings.Contains(body, "a.txt") || strings.Contains(body, "hidden") {
		t.Errorf("%d %q", status, body)
	}
}

// TestTruncatedFile: if a file gets shorter while it is sent, the connection is closed, and the
// client learns that bytes are missing.
func TestTruncatedFile(t *testing.T) {
	const size = 24 << 20 // more than the sockets' buffers
	engines(t, func(t *testing.T, engine string) {
		t.Parallel()
		w := newWorld(t)
		root := w.folder(map[string]string{"big": strings.Repeat("x", size)})
		r := w.start(w.config(engine, terminator.Site{Root: root}))
		protocols(t, func(t *testing.T, http2 bool) {
			w.write(filepath.Join(root, "big"), strings.Repeat("x", size))
			resp, err := r.client(http2, nil).Get("https://localhost/big")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			read(t, resp.Body, 1000)
			if err := os.Truncate(filepath.Join(root, "big"), 1<<20); err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, resp.Body); err == nil {
				t.Errorf("%d bytes without an error", n+1000)
			}
		})
		// The server goes on.
		w.write(filepath.Join(root, "big"), "small")
		if status, body := get(t, r.client(true, nil), "https://localhost/big"); status != 200 || body != "small" {
			t.Errorf("%d %q", status, body)
		}
	})
}

// TestSlowClients: clients that don't read, don't send their header, or don't send their body, are
// cut off.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(backend.Close)
	engines(t, func(t *testing.T, engine string) {
		t.Parallel()
		w := newWorld(t)
		root := w.folder(map[string]string{"big": strings.Repeat("x", 64<<20)})
		config := w.config(engine, terminator.Site{Root: root})
		config.Limits.Header, config.Limits.Idle = terminator.Time(limit), terminator.Time(limit)
		files := w.start(config)
		config = w.config(engine, terminator.Site{Backend: terminator.Backend{To: backend.URL}})
		config.Limits.Header, config.Limits.Idle = terminator.Time(limit), terminator.Time(limit)
		proxy := w.start(config)
		t.Run("never reads", func(t *testing.T) {
			t.Parallel()
			protocols(t, func(t *testing.T, http2 bool) {
				resp, err := files.client(http2, nil).Get("https://localhost/big")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				files.log.await(t, "path=/big", "protocol="+resp.Proto) // the request is over, though nobody reads
				if n, err := io.Copy(io.Discard, resp.Body); err == nil {
					t.Errorf("%d bytes without an error", n)
				}
			})
		})
		for name, c := range map[string]struct {
			server *running
			sent   string
		}{
			"no header":      {files, ""},
			"half a header":  {files, "GET / HTTP/1.1\r\nHost: localhost\r\n"},
			"half a body":    {proxy, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"},
			"body for files": {files, "GET /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"},
			"idle":           {files, "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				conn := c.server.mustDial(nil)
				write(t, conn, c.sent)
				if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the server keeps the connection")
				}
			})
		}
		t.Run("no handshake", func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", files.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the server keeps the connection")
			}
		})
	})
}

// TestAnswerBeforeBody: a response that needs no body isn't kept until the body comes, and doesn't ask
// for it.
func TestAnswerBeforeBody(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		r := w.start(w.config(engine, terminator.Site{Root: w.folder(nil)}))
		for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
			conn := r.mustDial(nil)
			write(t, conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"+expect+"\r\n")
			if got := read(t, conn, len("HTTP/1.1 405")); got != "HTTP/1.1 405" {
				t.Errorf("%q: got %q", expect, got)
			}
		}
	})
}

// TestUnread: a client that doesn't take a small HTTP/2 response, which net/http's buffers hold,
// loses its stream.
func TestUnread(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		t.Parallel()
		w := newWorld(t)
		config := w.config(engine, terminator.Site{Root: w.folder(map[string]string{"index.html": strings.Repeat("x", 1<<10)})})
		config.Limits.Idle = terminator.Time(limit)
		framer := w.start(config).framer(t)
		if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
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
			if _, reset := frame.(*http2.RSTStreamFrame); reset {
				return
			}
		}
	})
}

// TestLongDownload: a download that takes longer than the idle timeout goes on while the client
// reads.
func TestLongDownload(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		t.Parallel()
		w := newWorld(t)
		config := w.config(engine, terminator.Site{Root: w.folder(map[string]string{"big": strings.Repeat("x", 24<<20)})})
		config.Limits.Idle = terminator.Time(limit)
		r := w.start(config)
		protocols(t, func(t *testing.T, http2 bool) {
			resp, err := r.client(http2, nil).Get("https://localhost/big")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			for range 12 {
				<-time.After(limit / 8)
				read(t, resp.Body, 2<<20)
			}
			if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
				t.Errorf("%d bytes, %v", len(rest), err)
			}
		})
	})
}
