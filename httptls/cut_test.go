package httptls_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
)

// A cutConn is cut after some bytes, in one direction or the other: there the peer, or the reader,
// sees the end of the connection.
type cutConn struct {
	net.Conn
	*cutter
}

// A cutter counts the bytes of a connection made by its dial, and cuts it.
type cutter struct {
	readLimit, writeLimit atomic.Int64 // negative for none
	read, written         atomic.Int64
	afterHandshake        bool // the limits count from its end, because its length varies with the signatures
}

// cutAt returns a cutter that cuts its connection after that many bytes; a negative number means
// never.
func cutAt(afterHandshake bool, read, written int64) *cutter {
	c := &cutter{afterHandshake: afterHandshake}
	c.readLimit.Store(read)
	c.writeLimit.Store(written)
	return c
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cutConn{conn, c}, nil
}

func (c *cutConn) Read(b []byte) (int, error) {
	if limit := c.readLimit.Load(); limit >= 0 && !c.afterHandshake {
		left := limit - c.read.Load()
		if left <= 0 {
			_ = c.Close()
			return 0, io.EOF
		}
		b = b[:min(int64(len(b)), left)]
	}
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

func (c *cutConn) Write(b []byte) (int, error) {
	limit := c.writeLimit.Load()
	if limit < 0 || c.afterHandshake {
		c.written.Add(int64(len(b))) // before the answer can come
		return c.Conn.Write(b)
	}
	left := limit - c.written.Load()
	n, err := c.Conn.Write(b[:max(0, min(int64(len(b)), left))])
	c.written.Add(int64(n))
	if err == nil && n < len(b) {
		_ = c.Close()
		err = errors.New("cut")
	}
	return n, err
}

// context returns a context that notes the end of the handshake.
func (c *cutter) context(read, written *int64) context.Context {
	return httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		TLSHandshakeDone: func(tls.ConnectionState, error) {
			*read, *written = c.read.Load(), c.written.Load()
			if c.afterHandshake {
				c.afterHandshake = false
				if limit := c.readLimit.Load(); limit >= 0 {
					c.readLimit.Store(limit + *read)
				}
				if limit := c.writeLimit.Load(); limit >= 0 {
					c.writeLimit.Store(limit + *written)
				}
			}
		},
	})
}

var small = []byte("a small body, every byte of which counts")

// upload is sent in several records.
var upload = bytes.Repeat(small, 4)

// cutStep is the distance between two cuts: a byte, but more under the race detector, which is
// slow.
func cutStep() int64 {
	if raceEnabled {
		return 3
	}
	return 1
}

// cutKinds are the ways in which the end of a body is indicated.
var cutKinds = []string{"length", "chunked", "close", "h2"}

// outcomes counts the results that handlers saw.
type outcomes struct {
	mu   sync.Mutex
	seen map[string]int
}

func (o *outcomes) add(outcome string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = make(map[string]int)
	}
	o.seen[outcome]++
}

func (o *outcomes) count(outcome string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[outcome]
}

func cutServer(t *testing.T, kind string, got *outcomes) *running {
	return openSSL.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err == nil && !bytes.Equal(body, upload) {
				err = fmt.Errorf("cut short to %d bytes without an error", len(body))
				t.Error(err)
			}
			got.add(fmt.Sprint(err))
			return
		}
		switch kind {
		case "length":
			w.Header().Set("Content-Length", fmt.Sprint(len(small)))
		case "chunked":
			_ = http.NewResponseController(w).Flush()
		case "close":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%s", small[:10])
			_, _ = conn.Write(small[10:])
			return
		}
		_, _ = w.Write(small[:20])
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(small[20:])
	})})
}

// A truncated response is an error: at every byte after the handshake (cutStep), and at some within
// it.
func TestResponsesCut(t *testing.T) {
	for _, kind := range cutKinds {
		t.Run(kind, func(t *testing.T) {
			s := cutServer(t, kind, nil)
			get := func(c *cutter) (read int64, body []byte, err error) {
				client := openSSL.client(t, &http.Transport{DialContext: c.dial, DisableKeepAlives: true}, kind == "h2")
				var written int64
				req, _ := http.NewRequestWithContext(c.context(&read, &written), "GET", s.url("/"), nil)
				resp, err := client.Do(req)
				if err != nil {
					return read, nil, err
				}
				body, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				client.CloseIdleConnections()
				return read, body, err
			}
			whole := cutAt(false, -1, -1)
			handshake, body, err := get(whole)
			if err != nil || !bytes.Equal(body, small) {
				t.Fatalf("%q, %v", body, err)
			}
			failures, unexpected := 0, 0
			cut := func(afterHandshake bool, at int64) {
				_, body, err := get(cutAt(afterHandshake, at, -1))
				switch {
				case err == nil && !bytes.Equal(body, small):
					t.Errorf("cut at %d: %q without an error", at, body)
				case err != nil:
					failures++
					if len(body) > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Errorf("cut at %d in the body: %v", at, err)
					}
					if errors.Is(err, io.ErrUnexpectedEOF) {
						unexpected++
					}
				}
			}
			for at := int64(0); at < handshake; at += 101 {
				cut(false, at)
			}
			end := whole.read.Load() - handshake
			for at := int64(0); at < end; at += cutStep() {
				cut(true, at)
			}
			t.Logf("%d bytes after the handshake, %d failures, %d io.ErrUnexpectedEOF", end, failures, unexpected)
			if unexpected == 0 {
				t.Error("no cut was within the body")
			}
			if kind == "close" { // only close_notify indicates the end
				if _, _, err := get(cutAt(true, end-1, -1)); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("without all of close_notify: %v", err)
				}
			}
		})
	}
}

// A truncated request body is an error for the handler.
func TestRequestsCut(t *testing.T) {
	for _, kind := range cutKinds {
		if kind == "close" {
			continue // requests can't end this way
		}
		t.Run(kind, func(t *testing.T) {
			var got outcomes
			s := cutServer(t, kind, &got)
			post := func(c *cutter) (handshake int64, err error) {
				base := &http.Transport{DialContext: c.dial, DisableKeepAlives: true, WriteBufferSize: 64}
				client := openSSL.client(t, base, kind == "h2")
				var read int64
				body := io.Reader(bytes.NewReader(upload))
				if kind == "chunked" {
					body = io.MultiReader(body)
				}
				req, _ := http.NewRequestWithContext(c.context(&read, &handshake), "POST", s.url("/"), body)
				resp, err := client.Do(req)
				if err == nil {
					_ = resp.Body.Close()
				}
				client.CloseIdleConnections()
				return handshake, err
			}
			whole := cutAt(false, -1, -1)
			handshake, err := post(whole)
			if err != nil {
				t.Fatal(err)
			}
			end := whole.written.Load() - handshake
			for at := int64(0); at < end; at += cutStep() {
				_, _ = post(cutAt(true, -1, at))
			}
			if err := s.Shutdown(soon(t)); err != nil { // waits for the handlers
				t.Error(err)
			}
			cut := io.ErrUnexpectedEOF.Error()
			if kind == "h2" {
				cut = "client disconnected" // http2's own
			}
			t.Logf("%d bytes: handlers saw %d whole bodies, %d cut ones", end, got.count("<nil>"), got.count(cut))
			if got.count("<nil>") == 0 || got.count(cut) == 0 {
				t.Error("no cut was within the body")
			}
		})
	}
}
