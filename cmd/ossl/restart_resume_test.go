//go:build unix

package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRestartKeeps: a restart keeps Unix sockets at their paths, and clients resume if the keys of
// tickets are in files, in a store, or only in the memory of the process, which hands them over.
func TestRestartKeeps(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		version uint16 // of the client; 0 for the newest
		prepare func(*service)
		resumed bool
	}{
		{"keys in memory", nil, 0, nil, true},
		{"keys in memory, TLS 1.2", nil, tls.VersionTLS12, nil, true},
		{"keys in a file", []string{"--ticket-key", "ticket.key"}, 0,
			func(s *service) { s.write("ticket.key", strings.Repeat("k", 80)) }, true},
		{"keys in Redis", []string{"--redis", "redis", "--redis-secret", "secret"}, 0, startRedis, true},
		{"keys of crypto/tls", []string{"--engine", "go"}, 0, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newService(t)
			if c.prepare != nil {
				c.prepare(s)
			}
			socket := s.path("s")
			args := []string{"serve", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "unix:" + socket}
			for _, arg := range c.args {
				if arg == "redis" { // the socket's path
					arg = s.path(arg)
				}
				args = append(args, arg)
			}
			s.start(append(args, "public")...)
			config := &tls.Config{RootCAs: s.roots, ServerName: "localhost", MaxVersion: c.version,
				ClientSessionCache: tls.NewLRUClientSessionCache(0)}
			if s.visit(socket, config) {
				t.Error("the first connection is resumed")
			}
			resumed := !c.resumed
			// A store has 50 ms to answer; if that isn't enough on a busy machine, the handshake is a full one.
			for late := time.Now().Add(serverPatience); resumed != c.resumed && time.Now().Before(late); {
				s.restart()
				s.wait(s.firstEnded) // so that the new process has the next connection
				if resumed = s.visit(socket, config); resumed != c.resumed && !slices.Contains(c.args, "redis") {
					t.Fatalf("the new process has resumed: %v", resumed)
				}
			}
			if resumed != c.resumed {
				t.Errorf("the new process has resumed: %v", resumed)
			}
			s.restart()
			s.visit(socket, config)
			s.stop()
			if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket's path is left: %v", err)
			}
		})
	}
}

// TestRestartPolicy: the new process doesn't resume sessions that were made under another policy.
func TestRestartPolicy(t *testing.T) {
	for policy, want := range map[string]bool{"none": true, "mozilla-modern-6.0": false} {
		t.Run(policy, func(t *testing.T) {
			s := newService(t)
			socket := s.path("s")
			config := func(policy string) {
				s.write("sites.toml", fmt.Sprintf("listen = [%q]\npolicy = %q\n[[site]]\n"+
					"cert = \"localhost.pem\"\nkey = \"localhost-key.pem\"\nroot = \"public\"\n", "unix:"+socket, policy))
			}
			config("none")
			s.start("serve", "--config", "sites.toml")
			client := &tls.Config{RootCAs: s.roots, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(0)}
			s.visit(socket, client)
			config(policy)
			s.restart()
			s.wait(s.firstEnded) // so that the new process has the next connection
			if resumed := s.visit(socket, client); resumed != want {
				t.Errorf("the new process has resumed: %v", resumed)
			}
			s.stop()
		})
	}
}

// visit makes a request to a Unix socket, and reports whether its connection was resumed.
func (s *service) visit(socket string, config *tls.Config) (resumed bool) {
	s.t.Helper()
	raw, err := net.Dial("unix", socket)
	if err != nil {
		s.t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(serverPatience))
	conn := tls.Client(raw, config)
	_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
	text, err := io.ReadAll(conn) // and the tickets
	if err != nil || !strings.HasSuffix(string(text), "front page") {
		s.t.Fatalf("%q, %v", text, err)
	}
	return conn.ConnectionState().DidResume
}

// startRedis starts a store at the socket "redis", and writes the secret.
func startRedis(s *service) {
	s.t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Skip("redis-server is not installed")
	}
	cmd := exec.Command(program, "--port", "0", "--unixsocket", s.path("redis"), "--save", "", "--dir", s.dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.Contains(strings.ToLower(lines.Text()), "ready to accept connections") {
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	s.write("secret", strings.Repeat("5a", 32))
}
