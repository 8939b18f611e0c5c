package httptls_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fullSize asks for the tests' full sizes: ci/http-interop sets it.
const fullSize = "HTTPTLS_FULL_SIZE"

// scale returns the size of a load test: full in ci/http-interop, else reduced.
func scale(full, reduced int) int {
	if os.Getenv(fullSize) != "" {
		return full
	}
	return reduced
}

// resident returns the resident memory of a process in bytes.
func resident(t testing.TB, pid int) int64 {
	t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// Connections that hang before or in a handshake take memory for a bounded time, and don't disturb
// others.
func TestHalfOpenConnections(t *testing.T) {
	hanging := scale(10000, 300)
	var opened, ended atomic.Int64
	allEnded := make(chan struct{})
	allOpened := make(chan struct{})
	timeout := time.Duration(scale(5000, 3000)) * time.Millisecond
	s := openSSL.start(t, &http.Server{ErrorLog: discardLog, ReadHeaderTimeout: timeout, Handler: http.HandlerFunc(hello),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				if opened.Add(1) == int64(hanging) {
					close(allOpened)
				}
			case http.StateClosed:
				if ended.Add(1) == int64(hanging)+1 { // and the client's
					close(allEnded)
				}
			}
		}})
	before := resident(t, os.Getpid())
	clients := startHelper(t, "half-open", "ADDR="+s.addr, "COUNT="+fmt.Sprint(hanging), "HELLO="+hex.EncodeToString(clientHello(t)))
	if line := clients.line(t); line != "opened" {
		t.Fatal(line)
	}
	await(t, "the server to accept all connections", allOpened)
	c := openSSL.client(t, nil, true)
	for range 20 {
		if got := fetch(t, c, s.url("/")); got != "hello" {
			t.Fatal(got)
		}
	}
	each := (resident(t, os.Getpid()) - before) / int64(hanging)
	t.Logf("%d half-open connections: %d bytes resident each", hanging, each)
	if each > 128<<10 && !raceEnabled {
		t.Errorf("%d bytes for each half-open connection", each)
	}
	c.CloseIdleConnections()
	await(t, "all connections to end", allEnded) // the timeout closes all: the clients' side is still open
	clients.end(t)
}

// openHalf runs in the process that holds the clients' side of TestHalfOpenConnections: one process
// may have too few descriptors for both sides.
func openHalf() int {
	hello, err := hex.DecodeString(os.Getenv("HELLO"))
	count, err2 := strconv.Atoi(os.Getenv("COUNT"))
	if err != nil || err2 != nil {
		return 1
	}
	conns := make([]net.Conn, count)
	for i := range conns {
		if conns[i], err = net.Dial("tcp", os.Getenv("ADDR")); err != nil {
			fmt.Println(err)
			return 1
		}
		switch i % 3 { // silence, half a ClientHello, or a whole one without an answer
		case 1:
			_, _ = conns[i].Write(hello[:len(hello)/2])
		case 2:
			_, _ = conns[i].Write(hello)
		}
	}
	fmt.Println("opened")
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(conns)
	return 0
}

// A helper is the test binary in another role.
type helper struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr bytes.Buffer
	once   sync.Once
}

func startHelper(t *testing.T, role string, env ...string) *helper {
	t.Helper()
	h := &helper{cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(append(os.Environ(), helperRole+"="+role), env...)
	h.cmd.Stderr = &h.stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.in, h.out = in, bufio.NewScanner(out)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.end(t) })
	return h
}

// line returns a line of the helper's output.
func (h *helper) line(t *testing.T) string {
	t.Helper()
	defer h.killLater()()
	if !h.out.Scan() {
		t.Fatalf("the helper ended, or said nothing for %v: %s", patience, &h.stderr)
	}
	return h.out.Text()
}

// killLater kills the helper if its current task takes too long. The task is over when the returned
// function is called.
func (h *helper) killLater() (stop func()) {
	timer := time.AfterFunc(patience, func() { _ = h.cmd.Process.Kill() })
	return func() { timer.Stop() }
}

// end stops the helper, which runs until the end of its input.
func (h *helper) end(t *testing.T) {
	h.once.Do(func() {
		_ = h.in.Close()
		defer h.killLater()()
		if err := h.cmd.Wait(); err != nil {
			t.Errorf("the helper: %v: %s", err, &h.stderr)
		}
	})
}

// clientHello returns the first flight of a client.
func clientHello(t *testing.T) []byte {
	client, server := net.Pipe()
	go func() { _ = tls.Client(client, clientConfig2()).Handshake() }()
	buffer := make([]byte, 16<<10)
	n, err := server.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	return buffer[:n]
}

func clientConfig2() *tls.Config {
	config := clientConfig()
	config.ServerName = "localhost"
	return config
}

// Large bodies arrive unchanged.
func TestLargeBodies(t *testing.T) {
	eachPairing(t, func(t *testing.T, p pairing) {
		size := int64(scale(128<<20, 8<<20))
		if p.client == p.server {
			size = int64(scale(1<<30, 16<<20))
		}
		if p.client == netHTTP && p.server == netHTTP {
			return // this package is not used
		}
		sums := make(chan string, 1)
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				sums <- sumOf(t, r.Body, size)
				return
			}
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = io.Copy(w, newStream(size))
		})})
		c := p.client.client(t, nil, p.http2)
		want := sumOf(t, newStream(size), size)
		resp, err := c.Get(s.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		if got := sumOf(t, resp.Body, size); got != want {
			t.Errorf("down: %s, not %s", got, want)
		}
		_ = resp.Body.Close()
		resp, err = c.Post(s.url("/"), "application/octet-stream", newStream(size))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := await(t, "the sum of the body", sums); got != want {
			t.Errorf("up: %s, not %s", got, want)
		}
	})
}

func sumOf(t *testing.T, r io.Reader, size int64) string {
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err != nil || n != size {
		t.Errorf("%d bytes of %d, %v", n, size, err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// newStream returns size bytes, the same each time.
func newStream(size int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{}), size) }

// helperRole makes the test binary run as a helper: a server alone, whose memory is measured, or
// clients alone.
const helperRole = "HTTPTLS_TEST_HELPER"

func TestMain(m *testing.M) {
	switch role := os.Getenv(helperRole); role {
	case "":
		os.Exit(m.Run())
	case "half-open":
		os.Exit(openHalf())
	default:
		os.Exit(serveForMeasurement(role))
	}
}

func serveForMeasurement(name string) int {
	stack := netHTTP
	if name == openSSL.name {
		stack = openSSL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	cert, err := tls.X509KeyPair([]byte(os.Getenv("CERT")), []byte(os.Getenv("KEY")))
	if err != nil {
		return 1
	}
	fmt.Println(l.Addr())
	server := stack.server(&http.Server{Handler: http.HandlerFunc(hello),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true}})
	go func() {
		fmt.Fprintln(os.Stderr, server.ServeTLS(l, "", "")) // it should not return
		os.Exit(1)
	}()
	input := bufio.NewScanner(os.Stdin) // a line requests a garbage collection; the helper exits at the end
	for input.Scan() {
		runtime.GC()
		debug.FreeOSMemory()
		fmt.Println("collected")
	}
	return 0
}

// Idle connections, which are most of a busy server's, cost no more than net/http's.
func TestIdleConnections(t *testing.T) {
	if raceEnabled {
		t.Skip("memory under the race detector is the detector's")
	}
	idle := scale(10000, 500)
	certFile, keyFile := writePair(t, serverCert())
	cert, _ := os.ReadFile(certFile)
	key, _ := os.ReadFile(keyFile)
	perConn := make(map[string]int64)
	for _, stack := range stacks {
		server := startHelper(t, stack.name, "CERT="+string(cert), "KEY="+string(key))
		settled := func() int64 {
			_, _ = io.WriteString(server.in, "\n")
			server.line(t)
			return resident(t, server.cmd.Process.Pid)
		}
		addr := server.line(t)
		conns := keepAlive(t, addr, 50) // the server's one-time memory
		before := settled()
		conns = append(conns, keepAlive(t, addr, idle)...)
		perConn[stack.name] = (settled() - before) / int64(idle)
		t.Logf("%s: %d idle keep-alive connections, %d bytes resident each", stack.name, idle, perConn[stack.name])
		for _, conn := range conns { // they still work
			if err := request(conn); err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
		}
		server.end(t)
	}
	if ours, theirs := perConn["ossl"], perConn["nethttp"]; float64(ours) > 1.5*float64(theirs) {
		t.Errorf("%d bytes an idle connection, net/http %d", ours, theirs)
	}
}

// keepAlive makes connections that have each served a request.
func keepAlive(t *testing.T, addr string, n int) []net.Conn {
	conns := make([]net.Conn, n)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < n; i += 8 {
				conn, err := tls.Dial("tcp", addr, clientConfig())
				if err == nil {
					err = request(conn)
				}
				if err != nil {
					t.Error(err)
					return
				}
				conns[i] = conn
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return conns
}

// request sends a GET over a connection and reads the response.
func request(conn net.Conn) error {
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	if err != nil || !bytes.HasSuffix(answer[:n], []byte("hello")) {
		return fmt.Errorf("%q, %w", answer[:n], err)
	}
	return nil
}
