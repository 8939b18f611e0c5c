//go:build linux

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A halfCloser is a connection whose directions are closed one by one.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// stream returns the bytes that a client with a number sends.
func stream(number uint64) io.Reader {
	return rand.NewChaCha8([32]byte{byte(number), byte(number >> 8)})
}

// chat sends a stream to a server that echoes it, and checks the bytes that come back, until stop is closed. Then
// it closes its direction, and reads the rest.
func chat(conn halfCloser, number uint64, stop <-chan struct{}, exchanged *atomic.Uint64) error {
	sent := make(chan error, 1)
	var all atomic.Int64
	go func() {
		from, sizes := stream(number), rand.New(rand.NewPCG(number, 0))
		buffer := make([]byte, 40_000)
		for {
			n := 1 + sizes.IntN(200)
			if sizes.IntN(50) == 0 {
				n = 1 + sizes.IntN(len(buffer))
			}
			_, _ = io.ReadFull(from, buffer[:n])
			m, err := conn.Write(buffer[:n])
			all.Add(int64(m))
			if err != nil {
				sent <- err
				return
			}
			select {
			case <-stop:
				sent <- conn.CloseWrite()
				return
			case <-time.After(time.Duration(sizes.IntN(4)) * time.Millisecond):
			}
		}
	}()
	got, want := make([]byte, 32<<10), make([]byte, 32<<10)
	expected := stream(number)
	read := int64(0)
	var err error
	for err == nil {
		var n int
		n, err = conn.Read(got)
		read += int64(n)
		_, _ = io.ReadFull(expected, want[:n])
		if !bytes.Equal(got[:n], want[:n]) {
			err = fmt.Errorf("other bytes than were sent, among the %d behind %d", n, read-int64(n))
		}
		exchanged.Add(1)
	}
	if errors.Is(err, io.EOF) {
		err = <-sent
	}
	if err == nil && read != all.Load() {
		err = fmt.Errorf("%d bytes of %d came back", read, all.Load())
	}
	if err != nil {
		err = fmt.Errorf("after %d bytes: %w", read, err)
	}
	return err
}

// echoHalf sends back the bytes that clients send, and their end.
func echoHalf(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if c, ok := conn.(*tls.Conn); ok && c.Handshake() != nil {
				return
			}
			if _, err := io.Copy(conn, conn); err == nil {
				_ = conn.(halfCloser).CloseWrite()
			}
		}()
	}
}

// echoUpgraded is echoHalf behind an upgrade.
func echoUpgraded(l net.Listener) {
	_ = (&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		if _, err := io.Copy(conn, rw); err == nil {
			_ = conn.(halfCloser).CloseWrite()
		}
	})}).Serve(l)
}

// A bufferedConn is a connection of which data was read before.
type bufferedConn struct {
	halfCloser
	*bufio.Reader
}

func (c bufferedConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }

// mustListen listens on a free port of the loopback address.
func mustListen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// secureDial connects to the service with TLS.
func (s *service) secureDial(change func(*tls.Config)) (halfCloser, error) {
	raw, err := net.DialTimeout("tcp", s.address, serverPatience)
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() { _ = raw.Close() })
	config := &tls.Config{RootCAs: s.roots, ServerName: "localhost"}
	if change != nil {
		change(config)
	}
	conn := tls.Client(raw, config)
	return conn, conn.Handshake()
}

// upgrade changes to another protocol.
func upgrade(conn halfCloser) (halfCloser, error) {
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New(resp.Status)
	}
	return bufferedConn{conn, reader}, err
}

// proxyArgs are the arguments of a proxy whose connections outlive restarts.
func proxyArgs(to string, more ...string) []string {
	return append([]string{"proxy", "--listen", "127.0.0.1:0", "--address-rate", "0", "--to", to}, more...)
}

var certArgs = []string{"--cert", "localhost.pem", "--key", "localhost-key.pem"}

// TestRestartMoves: connections through a proxy go on in the new process, with all of their data, over many
// restarts, and no former process stays.
func TestRestartMoves(t *testing.T) {
	tls12 := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
	toTLS := []string{"--to-name", "localhost", "--to-ca", "ca/ca.pem"}
	for _, c := range []struct {
		name   string
		scheme string // of the backend
		secure bool   // the backend has TLS
		args   []string
		serve  func(net.Listener)
		dial   func(*service) (halfCloser, error)
	}{
		{"TCP", "", false, certArgs, echoHalf, func(s *service) (halfCloser, error) { return s.secureDial(nil) }},
		{"TLS 1.2", "", false, certArgs, echoHalf, func(s *service) (halfCloser, error) { return s.secureDial(tls12) }},
		{"to TLS", "tls://", true, append(toTLS, certArgs...), echoHalf,
			func(s *service) (halfCloser, error) { return s.secureDial(nil) }},
		{"plain to TLS", "tls://", true, append(toTLS, "--plain"), echoHalf, func(s *service) (halfCloser, error) {
			conn, err := net.Dial("tcp", s.address)
			if err != nil {
				return nil, err
			}
			s.t.Cleanup(func() { _ = conn.Close() })
			return conn.(halfCloser), nil
		}},
		{"upgraded", "http://", false, certArgs, echoUpgraded, func(s *service) (halfCloser, error) {
			conn, err := s.secureDial(nil)
			if err != nil {
				return nil, err
			}
			return upgrade(conn)
		}},
		{"upgraded to TLS", "https://", true, append(toTLS, certArgs...), echoUpgraded, func(s *service) (halfCloser, error) {
			conn, err := s.secureDial(nil)
			if err != nil {
				return nil, err
			}
			return upgrade(conn)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newService(t)
			l := mustListen(t)
			address := l.Addr().String()
			if c.secure {
				cert, err := tls.LoadX509KeyPair(s.path("localhost.pem"), s.path("localhost-key.pem"))
				if err != nil {
					t.Fatal(err)
				}
				l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}})
			}
			go c.serve(l)
			s.start(proxyArgs(c.scheme+address, c.args...)...)
			clients, restarts := 20, 20
			if testing.Short() { // a connection that has moved moves again
				clients, restarts = 8, 2
			}
			stop := make(chan struct{})
			exchanged := make([]atomic.Uint64, clients)
			var chats sync.WaitGroup
			for i := range clients {
				conn, err := c.dial(s)
				if err != nil {
					t.Fatal(err)
				}
				chats.Go(func() {
					if err := chat(conn, uint64(i), stop, &exchanged[i]); err != nil {
						t.Errorf("client %d: %v", i, err)
					}
				})
			}
			for range restarts {
				s.restart()
				s.await("connections of the former process") // it has told how many have moved
				for i := range clients {
					s.awaitMore(&exchanged[i])
				}
			}
			close(stop)
			chats.Wait()
			s.stop()
			moved := fmt.Sprintf(`"connections moved to the new process" number=%d`, clients)
			if n := strings.Count(s.log.String(), moved); n != restarts {
				t.Errorf("%d times %s, want %d", n, moved, restarts)
			}
		})
	}
}

// awaitMore waits until a count has grown.
func (s *service) awaitMore(count *atomic.Uint64) {
	s.t.Helper()
	late := time.After(serverPatience)
	for before := count.Load(); count.Load() == before; {
		select {
		case <-time.After(time.Millisecond):
		case <-late:
			s.t.Fatal("no data comes back any more")
		}
	}
}

// moveService starts a proxy in front of an echo, by a file whose text names the backend TO.
func moveService(t *testing.T, config string) (s *service, to string) {
	t.Helper()
	s = newService(t)
	l := mustListen(t)
	go echoHalf(l)
	to = l.Addr().String()
	s.write("sites.toml", strings.ReplaceAll(config, "TO", to))
	s.start("proxy", "--config", "sites.toml")
	return s, to
}

const moveConfig = `listen = ["127.0.0.1:0"]
access-log = true
admin = "unix:admin"
landlock = "off" # which would deny other backends
limits = { drain-timeout = "2s", address-rate = 0, per-address = 1 }
[[site]]
cert = "localhost.pem"
key = "localhost-key.pem"
to = "TO"
`

// exchange sends a line, and reads it back.
func exchange(conn net.Conn, line string) error {
	_ = conn.SetDeadline(time.Now().Add(serverPatience))
	if _, err := io.WriteString(conn, line); err != nil {
		return err
	}
	b := make([]byte, len(line))
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != line {
		return fmt.Errorf("%q, %w", b, err)
	}
	return nil
}

// TestRestartMovesState: the new process knows a connection's bytes, its client's address, a direction that has
// ended, and the time without progress.
func TestRestartMovesState(t *testing.T) {
	s, _ := moveService(t, moveConfig)
	conn, err := s.secureDial(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := exchange(conn, "before\n"); err != nil {
		t.Fatal(err)
	}
	s.restart()
	s.await("connections of the former process")
	if err := exchange(conn, "behind\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.secureDial(nil); err == nil {
		t.Error("the connection doesn't count for per-address")
	}
	admin := s.client("unix", s.path("admin"), false, false)
	resp, err := admin.Get("http://localhost/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	for _, line := range []string{"\nossl_serve_connections 1\n", "\nossl_serve_former_connections_total{result=\"moved\"} 1\n"} {
		if err != nil || !strings.Contains(string(text), line) {
			t.Errorf("no line %q, %v", line, err)
		}
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	s.await("received=14 sent=14")
	s.stop()
}

// TestRestartMovesHalf: a direction that has ended stays so, and the other one goes on.
func TestRestartMovesHalf(t *testing.T) {
	for _, first := range []string{"client", "backend"} {
		t.Run(first, func(t *testing.T) {
			s := newService(t)
			l := mustListen(t)
			s.start(proxyArgs(l.Addr().String(), certArgs...)...)
			client, err := s.secureDial(nil)
			if err != nil {
				t.Fatal(err)
			}
			accepted, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = accepted.Close() })
			a, b := client, accepted.(halfCloser)
			if first == "backend" {
				a, b = b, a
			}
			_, _ = io.WriteString(b, "x")
			_, _ = io.WriteString(a, "x")
			for _, conn := range []net.Conn{a, b} {
				_ = conn.SetDeadline(time.Now().Add(serverPatience))
				if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(b); err != nil || len(rest) > 0 {
				t.Fatalf("%q, %v", rest, err)
			}
			for range 2 {
				s.restart()
				s.await("connections of the former process")
				if _, err := io.WriteString(b, "line"); err != nil {
					t.Fatal(err)
				}
				line := make([]byte, 4)
				if _, err := io.ReadFull(a, line); err != nil || string(line) != "line" {
					t.Fatalf("%q, %v", line, err)
				}
			}
			if err := b.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(a); err != nil || len(rest) > 0 {
				t.Errorf("%q, %v", rest, err)
			}
			s.stop()
		})
	}
}

// TestRestartStays: a connection that the new configuration has no place for stays with the former process,
// which cuts it off after drain-timeout.
func TestRestartStays(t *testing.T) {
	for _, c := range []struct{ reason, from, to string }{
		{"listen", `listen = ["127.0.0.1:0"]`, `listen = ["127.0.0.2:0"]`},
		{"site", "[[site]]\n", "[[site]]\nnames = [\"other.test\"]\n"},
		{"backend", `to = "TO"`, `to = "127.0.0.1:1"`},
		{"settings", "key = ", "alpn = [\"other\"]\nkey = "},
		{"engine", "", ""},
		{"", "access-log", "leave-connections = true\naccess-log"}, // of the new process
	} {
		t.Run(c.reason, func(t *testing.T) {
			config := moveConfig
			if c.reason == "engine" {
				config = `engine = "go"` + "\n" + config
			}
			s, to := moveService(t, config)
			conn, err := s.secureDial(nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := exchange(conn, "before\n"); err != nil {
				t.Fatal(err)
			}
			changed := strings.ReplaceAll(config, c.from, c.to)
			if c.from == "" {
				changed = config
			}
			s.write("sites.toml", strings.ReplaceAll(changed, "TO", to))
			s.restart()
			for range 3 {
				if err := exchange(conn, "behind\n"); err != nil {
					t.Fatal(err)
				}
			}
			if c.reason != "" {
				s.await(`"connections stayed with this process" reason=` + c.reason + " number=1")
			}
			s.wait(s.firstEnded)
			if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%d bytes, %v, want an error that is not io.EOF", n, err)
			}
			if s.firstErr == nil {
				t.Error("the former process doesn't report that it has cut a connection off")
			}
			s.firstErr = nil
			s.stop("connections cut off: 1")
		})
	}
}

// TestRestartKilled: if one of the processes is killed while connections move, each connection is whole or
// closed, and none has other data.
func TestRestartKilled(t *testing.T) {
	tries, clients := 12, 20
	if testing.Short() {
		tries, clients = 3, 8
	}
	for _, which := range []string{"former", "new"} {
		t.Run(which, func(t *testing.T) {
			whole := 0
			for try := range tries {
				s := newService(t)
				l := mustListen(t)
				go echoHalf(l)
				s.start(proxyArgs(l.Addr().String(), append(certArgs, "--drain-timeout", "10s")...)...)
				stop := make(chan struct{})
				exchanged := make([]atomic.Uint64, clients)
				results := make(chan error, clients)
				for i := range clients {
					conn, err := s.secureDial(nil)
					if err != nil {
						t.Fatal(err)
					}
					go func() { results <- chat(conn, uint64(i), stop, &exchanged[i]) }()
				}
				for i := range clients {
					s.awaitMore(&exchanged[i])
				}
				killed := s.pid
				s.restart()
				if which == "new" {
					killed = s.pid
				}
				time.Sleep(time.Duration(try) * 700 * time.Microsecond)
				_ = syscall.Kill(killed, syscall.SIGKILL) // it may have ended
				close(stop)
				for range clients {
					err := <-results
					if err == nil {
						whole++
					} else if strings.Contains(err.Error(), "other bytes") {
						t.Error(err)
					}
				}
				_ = syscall.Kill(s.pid, syscall.SIGTERM)
				s.wait(s.firstEnded)
				s.wait(s.ended)
			}
			t.Logf("%d of %d connections were whole", whole, tries*clients)
		})
	}
}

// TestRestartMovesSilent: a connection moves whose server still has the client's tickets: they leave with the
// server's first data, which never come here.
func TestRestartMovesSilent(t *testing.T) {
	s := newService(t)
	l := mustListen(t)
	s.start(proxyArgs(l.Addr().String(), certArgs...)...)
	client, err := s.secureDial(nil)
	if err != nil {
		t.Fatal(err)
	}
	backend, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	_ = backend.SetDeadline(time.Now().Add(serverPatience))
	for range 3 {
		s.restart()
		s.await("moved=1")
		if _, err := io.WriteString(client, "line"); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 4)
		if _, err := io.ReadFull(backend, line); err != nil || string(line) != "line" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_ = backend.Close()
	_ = client.SetDeadline(time.Now().Add(serverPatience))
	if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	s.stop()
}

// TestRestartMovesIdle: an HTTP/1.1 connection goes on in the new process if it is idle, and a request that
// comes just then is answered.
func TestRestartMovesIdle(t *testing.T) {
	s := newService(t)
	s.start("serve", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "127.0.0.1:0",
		"--address-rate", "0", "public")
	request := func(conn net.Conn, reader *bufio.Reader) error {
		_ = conn.SetDeadline(time.Now().Add(serverPatience))
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		if err == nil && (string(body) != "front page" || resp.Close) {
			err = fmt.Errorf("%q, the connection closes: %t", body, resp.Close)
		}
		return err
	}
	const clients = 10
	var conns [clients]net.Conn
	var readers [clients]*bufio.Reader
	for i := range conns {
		var err error
		if conns[i], err = s.secureDial(nil); err != nil {
			t.Fatal(err)
		}
		readers[i] = bufio.NewReader(conns[i])
	}
	restarts := 20
	if testing.Short() {
		restarts = 4
	}
	for n := range restarts {
		stop := make(chan struct{})
		var busy sync.WaitGroup
		for i := range clients {
			switch {
			case i < 3: // makes requests all the time
				busy.Go(func() {
					for {
						if err := request(conns[i], readers[i]); err != nil {
							t.Errorf("restart %d, client %d: %v", n, i, err)
							return
						}
						select {
						case <-stop:
							return
						default:
						}
					}
				})
			case i < 7 && n%2 == 0: // makes one between two restarts, and the others none at first
				if err := request(conns[i], readers[i]); err != nil {
					t.Fatalf("restart %d, client %d: %v", n, i, err)
				}
			}
		}
		s.restart()
		s.await(fmt.Sprintf("moved=%d", clients))
		close(stop)
		busy.Wait()
	}
	for i := range clients {
		if err := request(conns[i], readers[i]); err != nil {
			t.Errorf("client %d: %v", i, err)
		}
		_ = conns[i].Close()
	}
	s.stop()
}

// TestRestartFailsKeeps: if the new process can't start, connections go on, and move at the next restart.
func TestRestartFailsKeeps(t *testing.T) {
	s, to := moveService(t, moveConfig)
	conn, err := s.secureDial(nil)
	if err != nil {
		t.Fatal(err)
	}
	good := strings.ReplaceAll(moveConfig, "TO", to)
	for range 2 {
		s.write("sites.toml", "colour = 1\n")
		s.signal(syscall.SIGUSR2)
		s.await("restart failed, this process goes on")
		if err := exchange(conn, "line\n"); err != nil {
			t.Fatal(err)
		}
		s.write("sites.toml", good)
		s.restart()
		s.await("moved=1")
		if err := exchange(conn, "line\n"); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.Close()
	s.stop("colour", "restart failed")
}
