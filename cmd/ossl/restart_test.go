//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/localca"
)

// A service is a server that is restarted, whose processes follow each other.
type service struct {
	t      *testing.T
	dir    string
	roots  *x509.CertPool
	notify *net.UnixConn
	pid    int
	first  *exec.Cmd
	// firstEnded is closed when the first process has exited.
	firstEnded chan struct{}
	firstErr   error // the result of the first process
	address    string
	admin      string
	lines      chan string   // that the processes log; the first 100 without await
	log        *bytes.Buffer // of all processes; complete when ended is closed
	ended      chan struct{}
	transports []*http.Transport // of clients
}

// newService prepares certificates for localhost, and folders.
func newService(t *testing.T) *service {
	t.Helper()
	folder, err := os.MkdirTemp("", "restart") // the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := &service{t: t, dir: folder, roots: x509.NewCertPool(), log: new(bytes.Buffer), lines: make(chan string, 100),
		ended: make(chan struct{}), firstEnded: make(chan struct{})}
	authority, err := localca.Open(filepath.Join(folder, "ca"), "")
	if err != nil {
		t.Fatal(err)
	}
	s.roots.AddCert(authority.Certificate)
	if _, err := authority.Issue(localca.Request{Names: []string{"localhost"}, Lifetime: time.Hour}, folder); err != nil {
		t.Fatal(err)
	}
	s.write("public/index.html", "front page")
	if s.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.path("notify"), Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.notify.Close() })
	return s
}

func (s *service) path(name string) string { return filepath.Join(s.dir, name) }

func (s *service) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// start starts the first process.
func (s *service) start(args ...string) {
	s.t.Helper()
	s.startProgram("ossl", args...)
}

func (s *service) startProgram(program string, args ...string) {
	s.t.Helper()
	s.first = exec.Command(program, args...)
	s.first.Dir = s.dir
	s.first.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.path("notify"), "GORACE=atexit_sleep_ms=0")
	read, write, err := os.Pipe() // the read end gets EOF when all processes have exited
	if err != nil {
		s.t.Fatal(err)
	}
	s.first.Stderr = write
	if err := s.first.Start(); err != nil {
		s.t.Fatal(err)
	}
	_ = write.Close()
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			fmt.Fprintln(s.log, lines.Text())
			select {
			case s.lines <- lines.Text():
			default: // a test with many lines, which doesn't wait for one
			}
		}
		_ = read.Close()
	}()
	go func() {
		s.firstErr = s.first.Wait()
		close(s.firstEnded)
	}()
	s.pid = s.first.Process.Pid
	s.t.Cleanup(func() {
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
		_ = s.first.Process.Kill()
		s.wait(s.ended)
		if s.t.Failed() {
			s.t.Logf("log:\n%s", s.log)
		}
	})
	state := s.notified("READY=1")
	for _, a := range []struct {
		form string
		to   *string
	}{{`listening on ([^;,\s]+)`, &s.address}, {`admin on (\S+)`, &s.admin}} {
		if m := regexp.MustCompile(a.form).FindStringSubmatch(state); m != nil {
			*a.to = m[1]
		}
	}
}

// notified returns the next state, which must contain a text.
func (s *service) notified(want string) string {
	s.t.Helper()
	_ = s.notify.SetReadDeadline(time.Now().Add(serverPatience))
	b := make([]byte, 4096)
	n, err := s.notify.Read(b)
	if state := string(b[:n]); err != nil || !strings.Contains(state, want) {
		s.t.Fatalf("state %q, %v, want %s", state, err, want)
	}
	return string(b[:n])
}

// await waits until a process logs a line with a text.
func (s *service) await(text string) {
	s.t.Helper()
	late := time.After(serverPatience)
	for {
		select {
		case line := <-s.lines:
			if strings.Contains(line, text) {
				return
			}
		case <-late:
			s.t.Fatalf("no line with %q", text)
		}
	}
}

// restart restarts the server. The former process finishes its requests and connections.
func (s *service) restart() {
	s.t.Helper()
	s.signal(syscall.SIGUSR2)
	_, pid, _ := strings.Cut(s.notified("MAINPID="), "=")
	var err error
	if s.pid, err = strconv.Atoi(pid); err != nil {
		s.t.Fatal(err)
	}
}

func (s *service) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(s.pid, signal); err != nil {
		s.t.Fatal(err)
	}
}

// wait waits until a process has exited, or all have.
func (s *service) wait(ended <-chan struct{}) {
	s.t.Helper()
	select {
	case <-ended:
	case <-time.After(serverPatience):
		s.t.Error("a process has not ended")
	}
}

// stop terminates the last process. The log must not have other errors than the expected ones.
func (s *service) stop(expected ...string) {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	s.notified("STOPPING=1")
	s.wait(s.ended)
	s.wait(s.firstEnded)
	if s.firstErr != nil {
		s.t.Errorf("the first process: %v", s.firstErr)
	}
	for line := range strings.Lines(s.log.String()) {
		if slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(line, text) }) {
			continue
		}
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "ossl: ") || strings.Contains(line, "DATA RACE") {
			s.t.Error(line)
		}
	}
}

// client returns a client, whose connections go to an address.
func (s *service) client(network, address string, http2, keepAlive bool) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots}, Protocols: new(http.Protocols),
		DisableKeepAlives: !keepAlive,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetHTTP2(http2)
	s.t.Cleanup(transport.CloseIdleConnections)
	s.transports = append(s.transports, transport)
	return &http.Client{Transport: transport, Timeout: serverPatience}
}

// closeIdle closes the clients' idle connections, for which a stopped server would wait some seconds.
func (s *service) closeIdle() {
	for _, transport := range s.transports {
		transport.CloseIdleConnections()
	}
}

// get makes a request.
func get(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && string(body) != "front page" && string(body) != "ok\n" {
		err = fmt.Errorf("%d %q", resp.StatusCode, body)
	}
	return err
}

// maxLoad bounds the number of requests of one client of a test.
const maxLoad = 5000

// underLoad restarts a server many times while clients make requests, none of which may fail.
func (s *service) underLoad(clients ...func() error) {
	s.t.Helper()
	restarts := 20
	if testing.Short() {
		restarts = 3
	}
	var load sync.WaitGroup
	stop := make(chan struct{})
	begun := make(chan struct{}, len(clients))
	for _, request := range clients {
		load.Go(func() {
			for n := range maxLoad {
				if err := request(); err != nil {
					s.t.Errorf("request %d: %v", n, err)
				}
				if n == 0 {
					begun <- struct{}{}
				}
				select {
				case <-stop:
					s.t.Logf("%d requests", n+1)
					return
				default:
				}
			}
		})
	}
	for range clients {
		<-begun
	}
	for range restarts {
		s.restart()
	}
	close(stop)
	load.Wait()
	s.closeIdle()
	s.stop()
}

// echo sends back the bytes that clients send, until l is closed.
func echo(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		go func() {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}()
	}
}

// TestRestartUnderLoad: no request fails while a server is restarted many times.
func TestRestartUnderLoad(t *testing.T) {
	t.Run("HTTP", func(t *testing.T) {
		s := newService(t)
		s.start("serve", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "127.0.0.1:0",
			"--address-rate", "0", "--admin", "127.0.0.1:0", "public")
		var clients []func() error
		for _, c := range []*http.Client{
			s.client("tcp", s.address, false, true), s.client("tcp", s.address, false, false), s.client("tcp", s.address, true, true),
		} {
			clients = append(clients, func() error { return get(c, "https://localhost/") })
		}
		health := s.client("tcp", s.admin, false, false)
		clients = append(clients, func() error { return get(health, "http://localhost/healthz") })
		s.underLoad(clients...)
	})
	t.Run("POST", func(t *testing.T) { // which clients don't repeat by themselves
		s := newService(t)
		var received atomic.Int64
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			received.Add(1)
			_, _ = io.Copy(w, r.Body)
		}))
		t.Cleanup(backend.Close)
		s.start("proxy", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "127.0.0.1:0",
			"--address-rate", "0", "--to", backend.URL)
		var clients []func() error
		var answered, unsent atomic.Int64
		for _, http2 := range []bool{false, true} {
			c := s.client("tcp", s.address, http2, true)
			clients = append(clients, func() error {
				resp, err := c.Post("https://localhost/", "text/plain", io.LimitReader(strings.NewReader("front page"), 20))
				if http2 && err != nil && strings.Contains(err.Error(), "cannot rewind body after connection loss") {
					// A GOAWAY has come before net/http's client sent the request, but after it had closed the body.
					unsent.Add(1)
					return nil
				}
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err == nil && string(body) != "front page" {
					err = fmt.Errorf("%d %q", resp.StatusCode, body)
				}
				answered.Add(1)
				return err
			})
		}
		s.underLoad(clients...)
		if received.Load() != answered.Load() {
			t.Errorf("%d requests reached the backend, %d were answered, %d not sent", received.Load(), answered.Load(), unsent.Load())
		}
	})
	t.Run("TCP", func(t *testing.T) {
		s := newService(t)
		backend, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = backend.Close() })
		go echo(backend)
		s.start("proxy", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "127.0.0.1:0",
			"--address-rate", "0", "--to", backend.Addr().String())
		request := func() error {
			raw, err := net.DialTimeout("tcp", s.address, serverPatience)
			if err != nil {
				return err
			}
			defer raw.Close()
			_ = raw.SetDeadline(time.Now().Add(serverPatience))
			conn := tls.Client(raw, &tls.Config{RootCAs: s.roots, ServerName: "localhost"})
			if _, err := io.WriteString(conn, "line\n"); err != nil {
				return err
			}
			if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "line\n" {
				return fmt.Errorf("%q, %w", line, err)
			}
			return conn.Close()
		}
		s.underLoad(request, request)
	})
	t.Run("plain", func(t *testing.T) { // clients have no TLS, the backend has
		s := newService(t)
		cert, err := tls.LoadX509KeyPair(s.path("localhost.pem"), s.path("localhost-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		backend, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = backend.Close() })
		go echo(backend)
		s.start("proxy", "--plain", "--listen", "unix:plain", "--address-rate", "0", "--to", "tls://"+backend.Addr().String(),
			"--to-name", "localhost", "--to-ca", "ca/ca.pem")
		request := func() error {
			conn, err := net.Dial("unix", s.path("plain"))
			if err != nil {
				return err
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(serverPatience))
			if _, err := io.WriteString(conn, "line\n"); err != nil {
				return err
			}
			if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
				return err
			}
			if line, err := io.ReadAll(conn); err != nil || string(line) != "line\n" {
				return fmt.Errorf("%q, %w", line, err)
			}
			return nil
		}
		s.underLoad(request, request)
	})
}

// TestRestartFails: if the new process can't start, the old one goes on, and can be restarted later.
func TestRestartFails(t *testing.T) {
	s := newService(t)
	good := `listen = ["127.0.0.1:0"]
landlock = "off" # which would deny another admin
[[site]]
cert = "localhost.pem"
key = "localhost-key.pem"
root = "public"
`
	s.write("sites.toml", good)
	s.start("serve", "--config", "sites.toml")
	client := s.client("tcp", s.address, false, false)
	s.write("sites.toml", "colour = 1\n")
	s.signal(syscall.SIGUSR2)
	s.await("restart failed, this process goes on")
	if err := get(client, "https://localhost/"); err != nil {
		t.Error(err)
	}
	s.write("sites.toml", "admin = \"unix:a\"\n"+good) // which a reload could not change
	s.restart()
	if err := get(client, "https://localhost/"); err != nil {
		t.Error(err)
	}
	if err := get(s.client("unix", s.path("a"), false, false), "http://localhost/healthz"); err != nil {
		t.Error(err)
	}
	s.stop("colour", "restart failed")
	if log := s.log.String(); !strings.Contains(log, "colour") {
		t.Error("the log doesn't say why")
	}
}

// newOpenService is newService for a server that another user goes on with. It skips the test if that needs root.
func newOpenService(t *testing.T) *service {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user: run the test as root")
	}
	s := newService(t)
	for _, name := range []string{".", "public", "public/index.html", "notify"} {
		if err := os.Chmod(s.path(name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestUser: a server that root starts goes on as another user, with all threads. Reading files that
// this user may not read fails, and the server goes on.
func TestUser(t *testing.T) {
	s := newOpenService(t)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	s.start("serve", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "127.0.0.1:0",
		"--user", "nobody", "public")
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.pid))
	if err != nil || len(threads) == 0 && runtime.GOOS == "linux" {
		t.Fatalf("%q, %v", threads, err)
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has exited
		}
		all := "\nUid:" + strings.Repeat("\t"+nobody.Uid, 4) + "\nGid:" + strings.Repeat("\t"+nobody.Gid, 4) + "\n"
		none := "\nCapEff:\t0000000000000000\n"
		if err != nil || !strings.Contains(string(status), all) || !strings.Contains(string(status), none) {
			t.Errorf("%s, %v", status, err)
		}
	}
	client := s.client("tcp", s.address, false, false)
	s.signal(syscall.SIGHUP)
	s.await("reload failed, the old configuration stays")
	s.notified("READY=1")
	s.signal(syscall.SIGUSR2)
	s.await("restart failed, this process goes on")
	if err := get(client, "https://localhost/"); err != nil {
		t.Error(err)
	}
	s.stop("reload failed", "restart failed", "permission denied")
}

// TestUserACME: root makes the storage and gives it to the user of --user, so that the server can write in it after it
// has become that user. A storage in which that user can't write is refused.
func TestUserACME(t *testing.T) {
	s := newOpenService(t)
	args := []string{"serve", "--acme", "localhost", "--acme-directory", "https://127.0.0.1:1/dir", "--listen", "127.0.0.1:0",
		"--user", "nobody", "public", "--acme-storage"}
	s.start(append(args, "state/acme")...)
	s.await("again in")
	if err := os.MkdirAll(s.path("root/127.0.0.1-1-dir/certificates"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ossl", append(args, "root")...)
	cmd.Dir = s.dir
	if text, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(text), "the server can't write in it") {
		t.Errorf("%q, %v", text, err)
	}
	s.stop("acme: no certificate")
}

// TestUserACMELinks: root doesn't follow links in the storage, which belongs to the service's user.
func TestUserACMELinks(t *testing.T) {
	s := newOpenService(t)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	storage := func(name string) {
		t.Helper()
		err := filepath.WalkDir(s.path(name), func(path string, d fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, uid, -1))
		})
		if err := errors.Join(err, os.Chmod(s.path(name), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"serve", "--acme", "localhost", "--acme-directory", "https://127.0.0.1:1/dir", "--listen", "127.0.0.1:0",
		"--user", "nobody", "public", "--acme-storage"}
	text := ""
	for _, name := range []string{"localhost-key.pem", "localhost.pem"} {
		part, err := os.ReadFile(s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		text += string(part)
	}
	s.write("secret", text)
	if err := errors.Join(os.Chmod(s.path("secret"), 0o600), os.Mkdir(s.path("target"), 0o700), os.Mkdir(s.path("other"), 0o700),
		os.MkdirAll(s.path("acme/127.0.0.1-1-dir/certificates"), 0o700), os.Symlink(s.path("target"), s.path("other/127.0.0.1-1-dir")),
		os.Symlink(s.path("secret"), s.path("acme/127.0.0.1-1-dir/certificates/localhost.pem"))); err != nil {
		t.Fatal(err)
	}
	storage("acme")
	storage("other")
	s.start(append(args, "acme", "--landlock", "off")...) // which would hide the key
	s.await("again in")
	if err := get(s.client("tcp", s.address, false, false), "https://localhost/"); err == nil {
		t.Error("root has read a key for the service")
	}
	cmd := exec.Command("ossl", append(args, "other")...)
	cmd.Dir = s.dir
	if text, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(text), "the server can't write in it") {
		t.Errorf("%q, %v", text, err)
	}
	if made, err := os.ReadDir(s.path("target")); err != nil || len(made) > 0 {
		t.Errorf("root has made folders elsewhere: %v, %v", made, err)
	}
	s.stop("acme: ", "handshake")
}

// TestUserRefused: root and unknown users are refused.
func TestUserRefused(t *testing.T) {
	s := newService(t)
	for name, want := range map[string]string{"root": "is root", "no-such-user": "unknown user"} {
		cmd := exec.Command("ossl", "serve", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "127.0.0.1:0",
			"--user", name, "public")
		cmd.Dir = s.dir
		text, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
