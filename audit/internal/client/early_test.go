package client_test

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
)

// openssl starts `openssl s_server` with the flags and returns its address, and what it prints.
func openssl(t *testing.T, flags ...string) (string, *bufio.Reader) {
	t.Helper()
	program, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	dir := t.TempDir()
	cert := certificate(t, ecdsaKey(t))
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "server.pem")
	data := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // s_server can't say which port it took
	server := exec.Command(program, append([]string{"s_server", "-accept", address, "-cert", file}, flags...)...)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := server.StdinPipe() // s_server ends with its input
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	timeout := time.AfterFunc(10*time.Second, func() { server.Process.Kill() }) // ends waitFor
	t.Cleanup(func() {
		timeout.Stop()
		in.Close()
		server.Process.Kill()
		server.Wait()
	})
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("openssl s_server: %v", err)
		}
		if strings.HasPrefix(line, "ACCEPT") {
			return address, lines
		}
	}
}

// waitFor reads lines until one has the text.
func waitFor(t *testing.T, lines *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("the server never printed %q", text)
		}
	}
}

func TestInteropEarlyData(t *testing.T) {
	for _, replay := range []bool{false, true} {
		t.Run(fmt.Sprintf("replay protection %v", !replay), func(t *testing.T) {
			flags := []string{"-early_data"}
			if replay {
				flags = append(flags, "-no_anti_replay")
			}
			address, lines := openssl(t, flags...)
			first, err := client.Handshake13(dial(t, address), &client.Config{})
			if err != nil {
				t.Fatal(err)
			}
			sessions, err := first.ReadSessions(1)
			if err != nil || len(sessions) != 1 || sessions[0].MaxEarly == 0 {
				t.Fatalf("sessions %+v, %v", sessions, err)
			}
			first.Close()
			config := &client.Config{Session: sessions[0], Early: []byte("GET /first HTTP/1.0\n")}
			second, err := client.Handshake13(dial(t, address), config)
			if err != nil {
				t.Fatal(err)
			}
			if s := second.State; !s.Resumed || !s.EarlyAccepted || bytes.Contains(s.FirstFlight, config.Early) {
				t.Errorf("state is %+v", s)
			}
			waitFor(t, lines, "GET /first")
			second.Close()

			// The same bytes again: the server takes the data if it has no protection.
			conn := dial(t, address)
			if _, err := conn.Write(second.State.FirstFlight); err != nil {
				t.Fatal(err)
			}
			if replay {
				waitFor(t, lines, "GET /first")
			} else {
				conn.SetDeadline(time.Now().Add(10 * time.Second))
				if n, err := conn.Read(make([]byte, 1)); n != 1 {
					t.Error("no answer to the replay:", err)
				}
			}
			conn.Close()
			if replay {
				return
			}
			// A used session isn't taken again; the handshake goes on without early data.
			config.Early = bytes.Repeat([]byte("early "), 1000)
			third, err := client.Handshake13(dial(t, address), config)
			if err != nil || third.State.EarlyAccepted {
				t.Fatalf("the session again: %v, %+v", err, third)
			}
		})
	}
}

func TestInteropKeyUpdate(t *testing.T) {
	address, _ := openssl(t, "-rev")
	c, err := client.Handshake13(dial(t, address), &client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.UpdateKeys(c); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("abc\n")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "cba\n" {
		t.Errorf("read %q, %v", got, err)
	}
	c.Close()
}
