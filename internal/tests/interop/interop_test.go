//go:build cgo || ossl_nocgo

package interop

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// The interop tests talk to other implementations' command-line tools, in both roles, both TLS
// versions, with and without a client certificate, always with ALPN.

const interopALPN = "ossl-interop"

// interopCases runs a test for both versions, with and without a client certificate.
func interopCases(t *testing.T, test func(t *testing.T, version uint16, mutual bool)) {
	for _, version := range tlstest.Versions {
		for _, mutual := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/mutual=%v", tlstest.VersionName(version), mutual), func(t *testing.T) { test(t, version, mutual) })
		}
	}
}

// checkInterop checks the state of our side of the connection.
func checkInterop(t *testing.T, state tls.ConnectionState, version uint16, protocol string, certified bool) {
	t.Helper()
	if state.Version != version || state.NegotiatedProtocol != protocol {
		t.Errorf("version %s, protocol %q", tls.VersionName(state.Version), state.NegotiatedProtocol)
	}
	if got := len(state.VerifiedChains) > 0; got != certified {
		t.Errorf("the peer's certificate was verified: %v", got)
	}
}

// echoServer accepts one connection and echoes the text; check gets its state. The result is its
// port.
func echoServer(t *testing.T, version uint16, mutual bool) (port string, done <-chan error) {
	t.Helper()
	config := tlstest.ServerConfig(tlstest.Only(version), tlstest.Protocols(interopALPN))
	if mutual {
		tlstest.AskClient(tls.RequireAndVerifyClientCert)(config)
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
			conn.SetDeadline(time.Now().Add(tlstest.Patience))
			buf := make([]byte, len(tlstest.FileText))
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
		go io.WriteString(in, tlstest.FileText)
	}
	out, err := cmd.CombinedOutput()
	select {
	case serr := <-done:
		if serr != nil {
			t.Errorf("our server: %v", serr)
		}
	case <-time.After(tlstest.Patience):
		t.Error("our server still waits")
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", cmd, err, out)
	} else if !strings.Contains(strings.ReplaceAll(string(out), "\r\n", "\n"), tlstest.FileText) {
		t.Errorf("%s: its output lacks the text: %q", cmd, out)
	}
}

// dialEcho connects to a tool's server, sends the text, expects it back with each line edited by
// edit, and closes.
func dialEcho(t *testing.T, addr string, version uint16, mutual bool, edit func(string) string) {
	t.Helper()
	config := tlstest.ClientConfig(tlstest.Only(version), tlstest.Protocols(interopALPN))
	if mutual {
		tlstest.Certificates(tlstest.ClientCert(tlstest.RSA2048))(config)
	}
	conn, err := ossl.DialWithDialer(&net.Dialer{Timeout: tlstest.Patience}, "tcp", addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(tlstest.Patience))
	if _, err := io.WriteString(conn, tlstest.FileText); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for i, line := range strings.SplitAfter(strings.TrimSuffix(tlstest.FileText, "\n"), "\n") {
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
