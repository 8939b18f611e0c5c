package httptls_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// A writesListener counts the Writes to its connections, which are not sockets of package net.
type writesListener struct {
	net.Listener
	writes atomic.Int64
}

type writesConn struct {
	net.Conn
	writes *atomic.Int64
}

func (l *writesListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &writesConn{conn, &l.writes}, nil
}

func (c *writesConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// TestSmallFiles checks that without kernel TLS a file, or a copy, costs no more writes than with
// net/http's own stack, and has the same header.
func TestSmallFiles(t *testing.T) {
	dir := t.TempDir()
	sizes := []int{0, 1, 500, 600, 2000, 3500, 10_000, 100_000}
	for _, size := range sizes {
		writeFile(t, filepath.Join(dir, fmt.Sprint(size)), bytes.Repeat([]byte("f"), size))
	}
	for _, path := range []string{"file", "copy", "copyn"} {
		t.Run(path, func(t *testing.T) {
			var want []string
			for _, stack := range stacks {
				l := &writesListener{Listener: listen(t)}
				files := http.StripPrefix("/file", http.FileServer(http.Dir(dir)))
				s := stack.startOn(t, l, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if path == "file" {
						files.ServeHTTP(w, r)
						return
					}
					f, err := os.Open(filepath.Join(dir, filepath.Base(r.URL.Path)))
					if err != nil {
						t.Error(err)
						return
					}
					defer f.Close()
					if path == "copy" {
						_, err = io.Copy(w, struct{ io.Reader }{f})
					} else {
						_, err = io.CopyN(w, f, 1<<40)
					}
					if err != nil && err != io.EOF {
						t.Error(err)
					}
				})})
				client := netHTTP.client(t, nil, false)
				_ = fetch(t, client, s.url("/"+path+"/0")) // connects
				var got []string
				for _, size := range sizes {
					before := l.writes.Load()
					resp, err := client.Get(s.url(fmt.Sprintf("/%s/%d", path, size)))
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if len(body) != size || err != nil {
						t.Errorf("%d bytes of %d, %v", len(body), size, err)
					}
					writes := fmt.Sprint(", writes ", l.writes.Load()-before)
					if size > 4000 { // crypto/tls makes a write of each record
						writes = ""
					}
					got = append(got, fmt.Sprint(size, ": length ", resp.ContentLength, ", ", resp.TransferEncoding, writes))
				}
				if stack == netHTTP {
					want = got
				} else if !slices.Equal(got, want) {
					t.Errorf("%s:\n%s\nnet/http:\n%s", stack.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

// TestTLSConn checks that hooks get the user's connections, and that TLSConn finds them.
func TestTLSConn(t *testing.T) {
	states := make(chan net.Conn, 100)
	inContext := make(chan net.Conn, 10)
	inBase := make(chan net.Listener, 10)
	hijacked := make(chan net.Conn, 1)
	l, err := ossl.Listen("tcp", "127.0.0.1:0", serverConfig())
	if err != nil {
		t.Fatal(err)
	}
	s := &httptls.Server{Server: &http.Server{
		ConnState: func(conn net.Conn, _ http.ConnState) { states <- conn },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			inContext <- conn
			return ctx
		},
		BaseContext: func(l net.Listener) context.Context {
			inBase <- l
			return context.Background()
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			hijacked <- conn
			_ = conn.Close()
		}),
	}}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		_ = s.Close()
		if err := await(t, "Serve to return", served); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	}()
	var got net.Conn
	ctx := httptrace.WithClientTrace(soon(t), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { got = info.Conn }})
	req, _ := http.NewRequestWithContext(ctx, "GET", "https://"+l.Addr().String(), nil)
	resp, err := openSSL.client(t, nil, false).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if c, ok := httptls.TLSConn(got); !ok || c == nil {
		t.Errorf("GotConn: %T", got)
	}
	conn := await(t, "a hijacked connection", hijacked)
	own, ok := httptls.TLSConn(conn)
	if !ok || own == nil {
		t.Fatalf("Hijack: %T", conn)
	}
	if _, has := conn.(io.ReaderFrom); has != own.SendsFiles() {
		t.Errorf("the connection has ReadFrom: %v", has)
	}
	if c, ok := (<-states).(*ossl.Conn); !ok || c != own {
		t.Error("ConnState got another connection")
	}
	if c, ok := (<-inContext).(*ossl.Conn); !ok || c != own {
		t.Error("ConnContext got another connection")
	}
	if <-inBase != l {
		t.Error("BaseContext got another listener")
	}
	if _, ok := httptls.TLSConn(conn.(interface{ NetConn() net.Conn }).NetConn()); ok {
		t.Error("a socket is a TLS connection")
	}
}

// fileHandler serves files of a directory in every way that may reach sendfile(2): /dir/NAME,
// /file/NAME, /content/NAME, /copy/NAME; and /fs/NAME, which may not.
func fileHandler(t *testing.T, dir string) http.Handler {
	open := func(w http.ResponseWriter, r *http.Request, use func(f *os.File)) {
		f, err := os.Open(filepath.Join(dir, filepath.Base(r.URL.Path)))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		defer f.Close()
		use(f)
	}
	mux := http.NewServeMux()
	mux.Handle("/dir/", http.StripPrefix("/dir", http.FileServer(http.Dir(dir))))
	mux.Handle("/fs/", http.StripPrefix("/fs", http.FileServerFS(os.DirFS(dir))))
	mux.HandleFunc("/file/", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(dir, filepath.Base(r.URL.Path)))
	})
	mux.HandleFunc("/content/", func(w http.ResponseWriter, r *http.Request) {
		open(w, r, func(f *os.File) {
			w.Header().Set("ETag", `"tag"`)
			http.ServeContent(w, r, "name.bin", time.Unix(1e9, 0), f)
		})
	})
	mux.HandleFunc("/copy/", func(w http.ResponseWriter, r *http.Request) {
		open(w, r, func(f *os.File) {
			if info, err := f.Stat(); err == nil {
				w.Header().Set("Content-Length", fmt.Sprint(info.Size()))
			}
			if _, err := io.Copy(w, f); err != nil {
				t.Error(err)
			}
		})
	})
	return mux
}

// A fileRequest is a request for a file, in the way that it can be asked for.
type fileRequest struct {
	method, path string
	header       map[string]string
}

var fileRequests = []fileRequest{
	{"GET", "/dir/large.bin", nil},
	{"GET", "/dir/small.txt", nil},
	{"GET", "/dir/empty", nil},
	{"GET", "/dir/missing", nil},
	{"GET", "/file/large.bin", nil},
	{"GET", "/fs/large.bin", nil},
	{"HEAD", "/dir/large.bin", nil},
	{"GET", "/content/large.bin", map[string]string{"Range": "bytes=1000-599999"}},
	{"GET", "/content/large.bin", map[string]string{"Range": "bytes=600000-"}},
	{"GET", "/content/large.bin", map[string]string{"Range": "bytes=-1000"}},
	{"GET", "/content/large.bin", map[string]string{"Range": "bytes=0-0"}},
	{"GET", "/content/large.bin", map[string]string{"Range": "bytes=0-9999,300000-320000"}},
	{"GET", "/content/large.bin", map[string]string{"Range": "bytes=99999999-"}},
	{"GET", "/content/large.bin", map[string]string{"Range": "bytes=100000-200000", "If-Range": `"tag"`}},
	{"GET", "/content/large.bin", map[string]string{"Range": "bytes=100000-200000", "If-Range": `"other"`}},
	{"GET", "/content/large.bin", map[string]string{"If-None-Match": `"tag"`}},
	{"HEAD", "/content/large.bin", map[string]string{"Range": "bytes=1000-599999"}},
	{"GET", "/copy/large.bin", nil},
	{"GET", "/copy/small.txt", nil},
	{"GET", "/dir/large.bin", map[string]string{"Accept-Encoding": "gzip"}},
}

// largeSize is the size of the largest file: several parts of 256 KB.
const largeSize = 700_001

// writeFiles writes the files of fileRequests.
func writeFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	large := make([]byte, largeSize)
	for i := range large {
		large[i] = byte(i*7 + i/251)
	}
	writeFile(t, filepath.Join(dir, "large.bin"), large)
	writeFile(t, filepath.Join(dir, "small.txt"), []byte(strings.Repeat("text\n", 200)))
	writeFile(t, filepath.Join(dir, "empty"), nil)
	for _, name := range []string{"large.bin", "small.txt", "empty"} {
		if err := os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ask returns the response to a request, without the fields that differ each time.
func (r fileRequest) ask(t *testing.T, client *http.Client, base string) (summary string, body []byte) {
	t.Helper()
	req, _ := http.NewRequestWithContext(soon(t), r.method, base+r.path, nil)
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	resp.Header.Del("Date")
	if contentType := resp.Header.Get("Content-Type"); strings.HasPrefix(contentType, "multipart/") {
		resp.Header.Set("Content-Type", "multipart")
		boundary := contentType[strings.Index(contentType, "=")+1:]
		body = bytes.ReplaceAll(body, []byte(boundary), []byte("boundary"))
	}
	lines := []string{r.method + " " + r.path, resp.Status, fmt.Sprint(resp.ContentLength, resp.TransferEncoding, resp.Close, err)}
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		lines = append(lines, name+": "+strings.Join(resp.Header[name], ", "))
	}
	return strings.Join(lines, "\n"), body
}

// compareFiles makes all requests, over one connection to each server, and compares the answers
// with net/http's.
func compareFiles(t *testing.T, handler http.Handler, config *tls.Config, servers ...*stack) {
	t.Helper()
	type answer struct {
		summary string
		body    []byte
	}
	var want []answer
	for _, stack := range append([]*stack{netHTTP}, servers...) {
		s := stack.start(t, &http.Server{Handler: handler})
		base := &http.Transport{TLSClientConfig: config.Clone(), DisableCompression: true}
		dials := 0
		base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
		client := netHTTP.client(t, base, false)
		for i, r := range fileRequests {
			summary, body := r.ask(t, client, "https://"+s.addr)
			if stack == netHTTP {
				want = append(want, answer{summary, body})
			} else if summary != want[i].summary || !bytes.Equal(body, want[i].body) {
				t.Errorf("%s: %d bytes, want %d; the same: %v\n%s\nnet/http:\n%s", stack.name, len(body), len(want[i].body),
					bytes.Equal(body, want[i].body), summary, want[i].summary)
			}
		}
		if dials != 1 {
			t.Errorf("%s: %d connections", stack.name, dials)
		}
	}
}

// TestFiles compares the answers of file servers.
func TestFiles(t *testing.T) {
	compareFiles(t, fileHandler(t, writeFiles(t)), clientConfig(), openSSL)
}
