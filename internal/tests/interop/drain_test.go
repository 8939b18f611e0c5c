//go:build (cgo || ossl_nocgo) && unix

package interop

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestInteropDrain writes to openssl s_server, which sends a ticket and is then stopped until the
// client has closed.
func TestInteropDrain(t *testing.T) {
	path, f := tlstest.Tool(t, "openssl"), tlstest.WriteFiles(t)
	for _, mutual := range []bool{false, true} {
		t.Run(fmt.Sprintf("mutual=%v", mutual), func(t *testing.T) {
			args := []string{"s_server", "-accept", "127.0.0.1:0", "-naccept", "1", "-cert", f.ServerCert, "-key", f.ServerKey,
				"-tls1_3", "-num_tickets", "1"}
			config := tlstest.ClientConfig(tlstest.Only(tls.VersionTLS13))
			if mutual {
				args = append(args, "-Verify", "1", "-verify_return_error", "-CAfile", f.CA)
				tlstest.Certificates(tlstest.ClientCert(tlstest.RSA2048))(config)
			}
			cmd := tlstest.Child(t, path, args...)
			var rest func() string
			addr := serveAll(t, cmd, "ACCEPT ", &rest)
			a, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			tlstest.MakeRoom(t, a)
			c := ossl.Client(a, config)
			defer c.Close()
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			tlstest.AwaitArrival(t, a)
			if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			text := strings.Repeat(tlstest.FileText, 1+tlstest.Unhurried/len(tlstest.FileText))
			_, err = io.WriteString(c, text)
			if closeErr := c.Close(); err == nil {
				err = closeErr
			}
			if contErr := cmd.Process.Signal(syscall.SIGCONT); err != nil || contErr != nil {
				t.Fatal(err, contErr)
			}
			if out := rest(); !strings.Contains(out, text) {
				t.Errorf("the server's %d bytes lack the text's %d: …%q", len(out), len(text), out[max(0, len(out)-200):])
			}
		})
	}
}

// serveAll starts a tool's server that exits by itself. It returns the rest of a line of the output
// after prefix, and rest returns the output after that line once the server has exited.
func serveAll(t *testing.T, cmd *exec.Cmd, prefix string, rest *func() string) (addr string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe() // open as long as it runs
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		in.Close()
	})
	r := bufio.NewReader(out)
	*rest = func() string {
		b, _ := io.ReadAll(r)
		return string(b)
	}
	for {
		line, err := r.ReadString('\n')
		if addr, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSpace(addr)
		}
		if err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
	}
}
