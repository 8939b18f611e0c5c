package terminator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/localca"
	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

const (
	// patience is the time after which a test that waits has failed.
	patience = time.Minute
	// limit is a timeout that a test waits for, and that a busy machine keeps otherwise. Tests that wait
	// for it run beside one another.
	limit = 5 * time.Second
)

// A world has an authority, and folders for a test.
type world struct {
	t         *testing.T
	dir       string
	authority *localca.Authority
	roots     *x509.CertPool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	var err error
	if w.authority, err = localca.Open(filepath.Join(w.dir, "ca"), ""); err != nil {
		t.Fatal(err)
	}
	w.roots = x509.NewCertPool()
	w.roots.AddCert(w.authority.Certificate)
	return w
}

// pair issues a certificate.
func (w *world) pair(client bool, names ...string) terminator.Pair {
	w.t.Helper()
	folder, err := os.MkdirTemp(w.dir, "pair")
	if err != nil {
		w.t.Fatal(err)
	}
	issued, err := w.authority.Issue(localca.Request{Names: names, Client: client, Lifetime: time.Hour}, folder)
	if err != nil {
		w.t.Fatal(err)
	}
	return terminator.Pair{Cert: issued.CertificateFile, Key: issued.KeyFile}
}

func (w *world) certificates(p terminator.Pair) []tls.Certificate {
	w.t.Helper()
	cert, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	if err != nil {
		w.t.Fatal(err)
	}
	return []tls.Certificate{cert}
}

// folder makes a folder with files.
func (w *world) folder(files map[string]string) string {
	w.t.Helper()
	folder, err := os.MkdirTemp(w.dir, "files")
	if err != nil {
		w.t.Fatal(err)
	}
	now := time.Now()
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			w.t.Fatal(err)
		}
		w.write(name, text)
		if err := os.Chtimes(name, now, now); err != nil { // none is older than another: see TestPrecompressed
			w.t.Fatal(err)
		}
	}
	return folder
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// config returns a configuration of one site for localhost.
func (w *world) config(engine string, site terminator.Site) *terminator.Config {
	if len(site.Pairs) == 0 {
		site.Pairs = []terminator.Pair{w.pair(false, "localhost", "127.0.0.1")}
	}
	return &terminator.Config{Listen: []string{"127.0.0.1:0"}, Engine: engine, Sites: []terminator.Site{site},
		Limits: terminator.DefaultLimits(), AccessLog: true}
}

// A running is a Server under test.
type running struct {
	*terminator.Server
	t     *testing.T
	addr  string
	log   *logs
	roots *x509.CertPool
}

// start starts a server, which the test stops.
func (w *world) start(c *terminator.Config) *running {
	w.t.Helper()
	if err := c.Check(); err != nil {
		w.t.Fatal(err)
	}
	log := newLogs()
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := terminator.Start(context.Background(), c, logger, logger)
	if err != nil {
		w.t.Fatal(err)
	}
	addresses, _ := s.Addrs()
	r := &running{Server: s, t: w.t, addr: addresses[0].String(), log: log, roots: w.roots}
	w.t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		s.Drain(ended)
		if w.t.Failed() {
			w.t.Logf("log:\n%s", log)
		}
	})
	return r
}

// dial makes a TLS connection; change may be nil.
func (r *running) dial(change func(*tls.Config)) (*tls.Conn, error) {
	config := &tls.Config{RootCAs: r.roots, ServerName: "localhost"}
	if change != nil {
		change(config)
	}
	raw, err := net.DialTimeout("tcp", r.addr, patience)
	if err != nil {
		return nil, err
	}
	r.t.Cleanup(func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(patience))
	conn := tls.Client(raw, config)
	return conn, conn.Handshake()
}

func (r *running) mustDial(change func(*tls.Config)) *tls.Conn {
	r.t.Helper()
	conn, err := r.dial(change)
	if err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// client returns an HTTP client, whose connections all go to the server.
func (r *running) client(http2 bool, change func(*tls.Config)) *http.Client {
	config := &tls.Config{RootCAs: r.roots}
	if change != nil {
		change(config)
	}
	transport := &http.Transport{TLSClientConfig: config, Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, r.addr)
		}}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetHTTP2(http2)
	r.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// get returns the status and the body of a response.
func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// engines runs a test with both engines, or with OpenSSL's alone with -short.
func engines(t *testing.T, test func(t *testing.T, engine string)) {
	for _, engine := range []string{"ossl", "go"} {
		if engine == "go" && testing.Short() {
			continue
		}
		t.Run(engine, func(t *testing.T) { test(t, engine) })
	}
}

// protocols runs a test with HTTP/1.1 and HTTP/2.
func protocols(t *testing.T, test func(t *testing.T, http2 bool)) {
	t.Run("HTTP1", func(t *testing.T) { test(t, false) })
	t.Run("HTTP2", func(t *testing.T) { test(t, true) })
}

// logs are the lines that a server has logged.
type logs struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed at the next line
}

func newLogs() *logs { return &logs{changed: make(chan struct{})} }

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits for a line that has all words.
func (l *logs) await(t *testing.T, words ...string) {
	t.Helper()
	late := time.After(patience)
	for {
		l.mu.Lock()
		text, changed := l.text.String(), l.changed
		l.mu.Unlock()
		for line := range strings.Lines(text) {
			has := true
			for _, word := range words {
				has = has && strings.Contains(line, word)
			}
			if has {
				return
			}
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("no line with %q", words)
		}
	}
}

// listen returns a listener that the test closes.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// accept returns the next connection, which the test closes.
func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	if d, ok := l.(interface{ SetDeadline(time.Time) error }); ok {
		_ = d.SetDeadline(time.Now().Add(patience))
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// handle runs f for each connection that l accepts, all at the same time, until l is closed. It closes a connection when
// f returns.
func handle(l net.Listener, f func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			f(conn)
		}()
	}
}

// read reads n bytes.
func read(t *testing.T, r io.Reader, n int) string {
	t.Helper()
	b := make([]byte, n)
	if m, err := io.ReadFull(r, b); err != nil {
		t.Fatalf("%q, %v", b[:m], err)
	}
	return string(b)
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}
