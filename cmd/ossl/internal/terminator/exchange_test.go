package terminator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// The sizes of an exchange's data. smallUpload is for uploads that aren't cut off, shortUpload for those that are with -short.
const uploadSize, shortUpload, smallUpload, answerSize = 24 << 20, 8 << 20, 2 << 20, 1 << 20

// cutData are the bytes of an upload. The answer is a part of them.
var cutData = sync.OnceValue(func() []byte {
	b := make([]byte, uploadSize)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
})

func answerData() []byte { return cutData()[1000:][:answerSize] }

// How the client or the backend has seen the other's data stop. HTTP has only the first and the last.
const (
	whole = "whole" // a regular end, after all data
	short = "short" // a regular end, after a part of the data
	cut   = "cut"   // an error
	other = "other" // data that was not sent: never right
)

// receive reads until an error or until limit bytes have come, and calls begun after the first ones.
// It returns how the data stopped, or "" at the limit.
func receive(r io.Reader, want []byte, limit int, begun func()) string {
	b := make([]byte, 64<<10)
	for n := 0; ; {
		m, err := r.Read(b[:min(len(b), max(limit-n, 1))])
		if n+m > len(want) || !bytes.Equal(b[:m], want[n:n+m]) {
			return other
		}
		if n += m; n > 0 {
			begun()
		}
		switch {
		case errors.Is(err, io.EOF) && n == len(want):
			return whole
		case errors.Is(err, io.EOF):
			return short
		case err != nil:
			return cut
		case n >= limit:
			return ""
		}
	}
}

// An exchange is an upload and its answer.
type exchange struct {
	kind    string // of the cut
	size    int    // the bytes of the upload
	at      int    // the bytes of the upload before it
	chunked bool   // HTTP: neither the upload nor the answer has a Content-Length
	begun   chan struct{}
	begin   func()      // closes begun
	backend chan string // how the backend has seen the upload stop
}

func (x *exchange) data() []byte { return cutData()[:x.size] }

// backendStops reports whether the backend does something else when it has got a part of the upload.
func (x *exchange) backendStops() bool {
	return slices.Contains([]string{"backend resets", "backend ends", "early answer", "answer during the upload"}, x.kind)
}

// await waits until the backend has got the first bytes.
func (x *exchange) await() {
	select {
	case <-x.begun:
	case <-time.After(patience):
	}
}

// cutConn makes a cut at the level of a TCP or Unix socket.
func cutConn(conn net.Conn, rst bool) {
	if tcp, ok := conn.(*net.TCPConn); ok && rst {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// closeWriter is the half of a connection that sends.
type closeWriter interface{ CloseWrite() error }

// serveTCP is the backend's side of an exchange over connections.
func (x *exchange) serveTCP(conn, raw net.Conn) {
	defer raw.Close()
	limit := x.size + 1
	if x.backendStops() {
		limit = x.at
	}
	seen := receive(conn, x.data(), limit, x.begin)
	answer := func() { _, _ = conn.Write(answerData()) }
	switch x.kind {
	case "backend resets":
		cutConn(raw, true)
	case "backend ends", "early answer": // and takes the rest of the upload
		if x.kind == "early answer" {
			answer()
		}
		_ = conn.(closeWriter).CloseWrite()
		seen = receive(conn, x.data()[x.at:], x.size, x.begin)
	case "answer during the upload":
		_, _ = conn.Write(answerData()[:answerSize/2])
		seen = receive(conn, x.data()[x.at:], x.size, x.begin)
		_, _ = conn.Write(answerData()[answerSize/2:])
		_ = conn.Close()
	case "answer reset":
		_, _ = conn.Write(answerData()[:x.at%answerSize])
		cutConn(raw, true)
	default:
		answer()
		_ = conn.Close()
	}
	x.backend <- seen
}

// serveHTTP is the backend's side of an exchange over HTTP.
func (x *exchange) serveHTTP(w http.ResponseWriter, r *http.Request) {
	raw := r.Context().Value(rawKey{}).(net.Conn)
	limit := x.size + 1
	if x.backendStops() {
		limit = x.at
	}
	seen := receive(r.Body, x.data(), limit, x.begin)
	defer func() { x.backend <- seen }()
	size := answerSize
	switch x.kind {
	case "backend resets", "backend ends":
		cutConn(raw, x.kind == "backend resets")
		return
	case "answer reset", "answer ends":
		size = x.at % answerSize
	}
	if seen == cut || seen == short {
		http.Error(w, "cut", http.StatusBadRequest)
		return
	}
	if !x.chunked {
		w.Header().Set("Content-Length", strconv.Itoa(answerSize))
	}
	if x.kind == "answer during the upload" {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = w.Write(answerData()[:answerSize/2])
		_ = http.NewResponseController(w).Flush()
		seen = receive(r.Body, x.data()[x.at:], x.size, x.begin)
		_, _ = w.Write(answerData()[answerSize/2:])
		return
	}
	_, _ = w.Write(answerData()[:size])
	if size < answerSize {
		_ = http.NewResponseController(w).Flush()
		cutConn(raw, x.kind == "answer reset")
	}
}

// rawKey is the key of a backend's connection, under TLS, in a request's context.
type rawKey struct{}

// A cutBackend has exchanges one at a time.
type cutBackend struct {
	terminator.Backend
	current atomic.Pointer[exchange]
}

// newCutBackend starts a backend: "plain", "tls" or "unix".
func newCutBackend(w *world, kind, protocol string) *cutBackend {
	w.t.Helper()
	var l net.Listener
	b := &cutBackend{}
	if kind == "unix" {
		folder, err := os.MkdirTemp("", "cuts") // the path of a socket has at most 107 bytes
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = os.RemoveAll(folder) })
		if l, err = net.Listen("unix", filepath.Join(folder, "s")); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = l.Close() })
	} else {
		l = listen(w.t)
	}
	schemes := map[string]string{"plain": "", "tls": "tls://", "unix": "unix:"}
	if protocol != "TCP" {
		schemes = map[string]string{"plain": "http://", "tls": "https://", "unix": "http+unix:"}
	}
	b.To = schemes[kind] + l.Addr().String()
	var config *tls.Config
	if kind == "tls" {
		b.CA = w.authority.File
		config = &tls.Config{Certificates: w.certificates(w.pair(false, "127.0.0.1"))}
	}
	if protocol != "TCP" {
		b.serveHTTP(w.t, l, config, protocol)
		return b
	}
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			conn := raw
			if config != nil {
				conn = tls.Server(raw, config)
			}
			go b.current.Load().serveTCP(conn, raw)
		}
	}()
	return b
}

func (b *cutBackend) serveHTTP(t *testing.T, l net.Listener, config *tls.Config, protocol string) {
	server := &http.Server{Protocols: new(http.Protocols), TLSConfig: config,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.current.Load().serveHTTP(w, r) }),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			if secure, ok := conn.(*tls.Conn); ok {
				conn = secure.NetConn()
			}
			return context.WithValue(ctx, rawKey{}, conn)
		}}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(protocol == "HTTP2")
	t.Cleanup(func() { _ = server.Close() })
	if config != nil {
		go func() { _ = server.ServeTLS(l, "", "") }()
	} else {
		go func() { _ = server.Serve(l) }()
	}
}

// A cutter is a client's connection: an *ossl.Conn or a *tls.Conn.
type cutter interface {
	net.Conn
	CloseWrite() error
	NetConn() net.Conn
}

// cutClient cuts the client's side. conn is the TLS connection.
func cutClient(kind string, conn cutter) {
	raw := conn.NetConn().(*net.TCPConn)
	switch kind {
	case "client resets":
		cutConn(raw, true)
	case "client ends without close_notify":
		_ = raw.CloseWrite()
	case "client sends close_notify":
		_ = conn.CloseWrite()
	}
}

// overTCP is the client's side of an exchange over a connection. It returns how the answer stopped,
// as the client saw it.
func (x *exchange) overTCP(conn cutter, stop func()) string {
	go func() {
		if _, err := conn.Write(x.data()[:x.at]); err != nil {
			return
		}
		x.await()
		if stop != nil {
			stop()
		}
		if cutClient(x.kind, conn); x.clientCuts() {
			return
		}
		if _, err := conn.Write(x.data()[x.at:]); err == nil {
			_ = conn.CloseWrite()
		}
	}()
	return receive(conn, answerData(), answerSize+1, func() {})
}

// strictDial makes a connection of package ossl: crypto/tls takes the end of the TCP stream for the
// end of the TLS stream, also after a reset, if a Write has got its error.
func (r *running) strictDial(t *testing.T) *ossl.Conn {
	t.Helper()
	raw, err := net.DialTimeout("tcp", r.addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(patience))
	client, err := ossl.NewContext(&tls.Config{RootCAs: r.roots})
	if err != nil {
		t.Fatal(err)
	}
	conn := client.Client(raw, "localhost")
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	return conn
}

func (x *exchange) clientCuts() bool {
	return slices.Contains([]string{"client resets", "client ends without close_notify", "client sends close_notify",
		"client gives up"}, x.kind)
}

// A cutBody is the body of a request. It has no more than the data's type needs, lest net/http
// learn the length.
type cutBody struct {
	x    *exchange
	conn func() *tls.Conn
	stop func()
	sent int
}

var errGivenUp = errors.New("the client gives up")

func (b *cutBody) Read(p []byte) (int, error) {
	if b.sent == b.x.at {
		b.x.await()
		if b.stop != nil {
			b.stop()
		}
		if cutClient(b.x.kind, b.conn()); b.x.clientCuts() {
			return 0, errGivenUp
		}
	}
	end := b.x.size
	if b.sent < b.x.at {
		end = b.x.at
	}
	n := copy(p, b.x.data()[b.sent:end])
	if b.sent += n; b.sent == b.x.size {
		return n, io.EOF
	}
	return n, nil
}

// overHTTP is the client's side of an exchange over HTTP.
func (x *exchange) overHTTP(r *running, http2 bool, stop func()) string {
	var conn atomic.Pointer[tls.Conn]
	client := r.client(http2, nil)
	transport := client.Transport.(*http.Transport)
	transport.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := r.dial(func(config *tls.Config) {
			if http2 {
				config.NextProtos = []string{"h2"}
			}
		})
		conn.Store(c)
		return c, err
	}
	request, err := http.NewRequest("POST", "https://localhost/", &cutBody{x: x, conn: conn.Load, stop: stop})
	if err != nil {
		return err.Error()
	}
	if !x.chunked {
		request.ContentLength = int64(x.size)
	}
	resp, err := client.Do(request)
	if err != nil {
		return cut
	}
	defer resp.Body.Close()
	seen := receive(resp.Body, answerData(), answerSize+1, func() {})
	if resp.StatusCode != 200 {
		return cut
	}
	return seen
}
