//go:build cgo

package ossl_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// The interop tests talk to other implementations' command-line tools, in both roles, both versions of TLS, with and without a
// client certificate, always with ALPN.

const (
	interopALPN    = "ossl-interop"
	interopTimeout = tlstest.Patience
)

// interopText is what is echoed: some kilobytes of lines.
var interopText = strings.Repeat("the quick brown fox jumps over the lazy dog 0123456789 abcdefgh\n", 64)

// tool finds a program or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// hostEnv is the environment without what makes this process use another libssl or C library than the host's tools.
func hostEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "LD_LIBRARY_PATH", "LD_PRELOAD", "OPENSSL_MODULES", "OPENSSL_CONF", "OSSL_LIBRARY":
			return true
		}
		return false
	})
}

// child prepares a program that is killed when the test ends or takes too long.
func child(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), interopTimeout)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = hostEnv()
	cmd.WaitDelay = tlstest.Patience
	return cmd
}

// interopFiles are the certificates as PEM files.
type interopFiles struct{ ca, serverCert, serverKey, clientCert, clientKey, text string }

func writeInteropFiles(t *testing.T) (f interopFiles) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der ...[]byte) string {
		var b []byte
		for _, d := range der {
			b = append(b, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: d})...)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pair := func(name string, c tls.Certificate) (cert, key string) {
		der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		return write(name+".crt", "CERTIFICATE", c.Certificate...), write(name+".key", "PRIVATE KEY", der)
	}
	f.ca = write("ca.crt", "CERTIFICATE", tlstest.CA().Cert.Raw)
	f.serverCert, f.serverKey = pair("server", tlstest.ServerCert(tlstest.P256))
	f.clientCert, f.clientKey = pair("client", tlstest.ClientCert(tlstest.RSA2048))
	f.text = filepath.Join(dir, "text")
	if err := os.WriteFile(f.text, []byte(interopText), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// interopCases runs a test for both versions, with and without a client certificate.
func interopCases(t *testing.T, test func(t *testing.T, version uint16, mutual bool)) {
	for _, version := range versions {
		for _, mutual := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/mutual=%v", versionName(version), mutual), func(t *testing.T) { test(t, version, mutual) })
		}
	}
}

// checkInterop checks what our end knows of the connection.
func checkInterop(t *testing.T, state tls.ConnectionState, version uint16, protocol string, certified bool) {
	t.Helper()
	if state.Version != version || state.NegotiatedProtocol != protocol {
		t.Errorf("version %s, protocol %q", tls.VersionName(state.Version), state.NegotiatedProtocol)
	}
	if got := len(state.VerifiedChains) > 0; got != certified {
		t.Errorf("the peer's certificate was verified: %v", got)
	}
}

// echoServer accepts one connection and echoes the text; check gets its state. The result is its port.
func echoServer(t *testing.T, version uint16, mutual bool) (port string, done <-chan error) {
	t.Helper()
	config := tlstest.ServerConfig(only(version), protocols(interopALPN))
	if mutual {
		askClient(tls.RequireAndVerifyClientCert)(config)
	}
	l, err := ossl.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	result := make(chan error, 1)
	go func() {
		result <- func() error {
			conn, err := l.Accept()
			if err != nil {
				return err
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(interopTimeout))
			buf := make([]byte, len(interopText))
			if _, err := io.ReadFull(conn, buf); err != nil {
				return fmt.Errorf("read: %w", err)
			}
			checkInterop(t, conn.(*ossl.Conn).ConnectionState(), version, interopALPN, mutual)
			if _, err := conn.Write(buf); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			return nil
		}()
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, result
}

// runClient runs a client against an echoServer and wants the text in its output.
func runClient(t *testing.T, done <-chan error, cmd *exec.Cmd, feed bool) {
	t.Helper()
	if feed {
		in, err := cmd.StdinPipe() // stays open: some clients end at the end of their input, before the answer is there
		if err != nil {
			t.Fatal(err)
		}
		go io.WriteString(in, interopText)
	}
	out, err := cmd.CombinedOutput()
	select {
	case serr := <-done:
		if serr != nil {
			t.Errorf("our server: %v", serr)
		}
	case <-time.After(interopTimeout):
		t.Error("our server still waits")
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", cmd, err, out)
	} else if !strings.Contains(strings.ReplaceAll(string(out), "\r\n", "\n"), interopText) {
		t.Errorf("%s: its output lacks the text: %q", cmd, out)
	}
}

// dialEcho connects to a tool's server, has the text echoed, each line through edit, and closes.
func dialEcho(t *testing.T, addr string, version uint16, mutual bool, edit func(string) string) {
	t.Helper()
	config := tlstest.ClientConfig(only(version), protocols(interopALPN))
	if mutual {
		certificates(tlstest.ClientCert(tlstest.RSA2048))(config)
	}
	conn, err := ossl.DialWithDialer(&net.Dialer{Timeout: interopTimeout}, "tcp", addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(interopTimeout))
	if _, err := io.WriteString(conn, interopText); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for i, line := range strings.SplitAfter(strings.TrimSuffix(interopText, "\n"), "\n") {
		got, err := r.ReadString('\n')
		if want := edit(strings.TrimSuffix(line, "\n")); strings.TrimRight(got, "\r\n") != want || err != nil {
			t.Fatalf("line %d: %q, %v; want %q", i, got, err, want)
		}
	}
	checkInterop(t, conn.ConnectionState(), version, interopALPN, true)
}

func unchanged(s string) string { return s }

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// serve starts a tool's server and returns the address that awaits in a line of its output, after prefix.
func serve(t *testing.T, cmd *exec.Cmd, prefix string) (addr string) {
	t.Helper()
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = pw, pw
	in, err := cmd.StdinPipe() // open as long as it runs
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		in.Close()
		pr.Close()
	})
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(pr); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-time.After(interopTimeout): // nobody listens any more; the rest would only fill the pipe
			}
		}
	}()
	var all []string
	for line := range lines {
		all = append(all, line)
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			go func() {
				for range lines {
				}
			}()
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("%s: %s", cmd, strings.Join(all, "\n"))
	return ""
}
