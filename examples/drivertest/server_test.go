package drivertest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/dbtls"
	"github.com/ossl-go/ossl/internal/freeport"
)

// lookPath returns the path of a server, or skips the test. Distributions keep servers out of PATH.
func lookPath(t *testing.T, program string) string {
	t.Helper()
	for _, pattern := range []string{program, "/usr/sbin/" + program, "/usr/lib/postgresql/*/bin/" + program} {
		matches := []string{pattern}
		if filepath.IsAbs(pattern) {
			matches, _ = filepath.Glob(pattern)
		}
		for _, match := range matches {
			if path, err := exec.LookPath(match); err == nil {
				return path
			}
		}
	}
	t.Skipf("%s is not installed", program)
	return ""
}

// A home is a server's folder, with its certificate and key, and the authority for clients.
type home struct {
	t                *testing.T
	dir              string
	cert, key, roots string // files
	port             int
	ready            func() bool // reports whether the server, which accepts connections, is ready; nil for true
}

func newHome(t *testing.T) *home {
	t.Helper()
	h := &home{t: t, dir: t.TempDir(), port: freePort(t)}
	h.cert, h.key = h.write("cert.pem", certPEM(ids().server)), h.write("key.pem", keyPEM(ids().server))
	h.roots = h.write("roots.pem", ids().rootPEM)
	return h
}

// write writes a file that only the server can read.
func (h *home) write(name string, content []byte) string {
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *home) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(h.port)) }

func freePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// command returns a command that doesn't run as root.
func (h *home) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.WaitDelay = h.dir, 5*time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "LC_ALL=C"}
	confine(cmd)
	return cmd
}

// run runs a program to its end.
func (h *home) run(program string, args ...string) {
	h.t.Helper()
	if out, err := h.command(program, args...).CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// start starts a server, waits until it accepts connections, and stops it at the end of the test.
func (h *home) start(stop os.Signal, program string, args ...string) {
	h.t.Helper()
	cmd, out := h.command(program, args...), new(output)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	h.t.Cleanup(func() {
		_ = cmd.Process.Signal(stop)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
			h.t.Errorf("%s didn't stop", program)
		}
		if h.t.Failed() {
			h.t.Logf("%s:\n%s", program, out)
		}
	})
	deadline := time.After(30 * time.Second)
	for {
		conn, err := net.Dial("tcp", h.addr())
		if err == nil {
			conn.Close()
			if h.ready == nil || h.ready() {
				return
			}
		}
		select {
		case <-ended:
			h.t.Fatalf("%s ended:\n%s", program, out)
		case <-deadline:
			h.t.Fatalf("%s isn't ready:\n%s", program, out)
		case <-time.After(20 * time.Millisecond): // another process: there is nothing else to wait for
		}
	}
}

// An output keeps the last bytes that a server prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf.Len() > 1<<16 {
		o.buf.Next(o.buf.Len() / 2)
	}
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// ids are an authority, and certificates of a server, 127.0.0.1 and localhost, and of the client
// "app".
var ids = sync.OnceValue(func() (ids struct {
	rootPEM        []byte
	roots          *x509.CertPool
	server, client tls.Certificate
}) {
	issue := func(template *x509.Certificate, parent *tls.Certificate) tls.Certificate {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		template.SerialNumber, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(time.Hour)
		if parent == nil {
			parent = &tls.Certificate{Leaf: template, PrivateKey: key}
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent.Leaf, key.Public(), parent.PrivateKey)
		if err != nil {
			panic(err)
		}
		leaf, err := x509.ParseCertificate(der)
		if err != nil {
			panic(err)
		}
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	}
	root := issue(&x509.Certificate{Subject: pkix.Name{CommonName: "dbtls root"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}, nil)
	ids.server = issue(&x509.Certificate{Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, &root)
	ids.client = issue(&x509.Certificate{Subject: pkix.Name{CommonName: "app"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, &root)
	ids.rootPEM, ids.roots = certPEM(root), x509.NewCertPool()
	ids.roots.AddCert(root.Leaf)
	return ids
})

func certPEM(cert tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
}

func keyPEM(cert tls.Certificate) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// A connection has the parameters that differ between the connections of a test.
type connection struct {
	name    string
	version uint16
	mutual  bool
}

var connections = []connection{
	{"TLS 1.2", tls.VersionTLS12, false}, {"TLS 1.2 mutual", tls.VersionTLS12, true},
	{"TLS 1.3", tls.VersionTLS13, false}, {"TLS 1.3 mutual", tls.VersionTLS13, true},
}

// A recorder is a Dialer that keeps sessions, and the connections that it has made.
type recorder struct {
	*dbtls.Dialer
	mu    sync.Mutex
	conns []*ossl.Conn
}

func newRecorder(t *testing.T, c connection, edits ...func(*tls.Config)) *recorder {
	t.Helper()
	config := &tls.Config{
		RootCAs: ids().roots, MinVersion: c.version, MaxVersion: c.version, ClientSessionCache: tls.NewLRUClientSessionCache(4),
	}
	if c.mutual {
		config.Certificates = []tls.Certificate{ids().client}
	}
	for _, edit := range edits {
		edit(config)
	}
	ctx, err := ossl.NewContext(config)
	if err != nil {
		t.Fatal(err)
	}
	return &recorder{Dialer: &dbtls.Dialer{Context: ctx}}
}

// recorded returns dial with a record of its connections.
func (r *recorder) recorded(dial dbtls.DialFunc) dbtls.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if c, ok := dbtls.TLSConn(conn); ok {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.conns = append(r.conns, c)
		}
		return conn, err
	}
}

// states returns the states of all connections.
func (r *recorder) states() (states []tls.ConnectionState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		states = append(states, conn.ConnectionState())
	}
	return states
}

// check checks that there were n connections, all with the version, and that the last one was
// resumed or not.
func (r *recorder) check(t *testing.T, c connection, n int, resumed bool) {
	t.Helper()
	states := r.states()
	if len(states) != n {
		t.Fatalf("%d connections, want %d", len(states), n)
	}
	for _, state := range states {
		if !state.HandshakeComplete || state.Version != c.version {
			t.Errorf("handshake complete: %v, version %s", state.HandshakeComplete, tls.VersionName(state.Version))
		}
	}
	if got := states[n-1].DidResume; got != resumed {
		t.Errorf("the last connection was resumed: %v, want %v", got, resumed)
	}
}
