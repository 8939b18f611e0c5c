package client

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/audit/internal/testcert"
	"github.com/ossl-go/ossl/internal/freeport"
)

// EchoServer starts a crypto/tls server that echoes, and returns its address.
func EchoServer(t *testing.T, config *tls.Config) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(20 * time.Second))
				io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// Connect returns a connection to an address.
func Connect(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// OpenSSL starts `openssl s_server` with the flags and returns its address and its output.
func OpenSSL(t *testing.T, cert *testcert.Cert, flags ...string) (string, *bufio.Reader) {
	t.Helper()
	program, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	file := filepath.Join(t.TempDir(), "server.pem")
	if err := os.WriteFile(file, slices.Concat(cert.PEM(), cert.KeyPEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := freeport.Take() // s_server can't report a port that the system chose
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	server := exec.Command(program, append([]string{"s_server", "-accept", address, "-cert", file}, flags...)...)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := server.StdinPipe() // s_server exits at the end of its input
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	timeout := time.AfterFunc(20*time.Second, func() { server.Process.Kill() }) // stops a wait for a line
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
