//go:build cgo && unix

package ossl_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestCloseDrains: a client that writes and closes first reads the data that a server has sent after the handshake, so that its
// kernel doesn't send a reset. crypto/tls's servers that ask for certificates send such data.
func TestCloseDrains(t *testing.T) {
	for _, way := range []struct {
		name  string
		close func(c *ossl.Conn) error
	}{
		{"Close", (*ossl.Conn).Close},
		{"CloseWrite, Close", func(c *ossl.Conn) error {
			if err := c.CloseWrite(); err != nil {
				return err
			}
			return c.Close()
		}},
		{"after the read deadline", func(c *ossl.Conn) error {
			c.SetReadDeadline(time.Now().Add(-time.Second))
			return c.Close()
		}},
		{"after a Read that timed out", func(c *ossl.Conn) error {
			c.SetReadDeadline(time.Now().Add(-time.Second))
			if _, err := c.Read(make([]byte, 1)); err == nil {
				return fmt.Errorf("Read succeeded")
			}
			return c.Close()
		}},
	} {
		for _, path := range []string{"auto", "libssl"} {
			for _, cached := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/cache=%v", way.name, path, cached), func(t *testing.T) {
					records := map[string]ossl.RecordPath{"auto": ossl.RecordsAuto, "libssl": ossl.RecordsLibssl}[path]
					cc, sc := tlstest.Resuming(tls.VersionTLS13)
					if !cached {
						cc.ClientSessionCache = nil
					}
					cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
					sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
					a, b := tlstest.Loopback()
					tlstest.MakeRoom(t, a)
					b.(*net.TCPConn).SetReadBuffer(16 << 10)
					c, s := ossltest.NewContext(t, cc, ossl.WithRecordPath(records)).Client(a, ""), tls.Server(b, sc)
					defer c.Close()
					defer s.Close()
					tlstest.Shake(t, c, s)
					tlstest.AwaitArrival(t, a) // the ticket
					data := tlstest.Pattern(tlstest.Unhurried)
					if _, err := c.Write(data); err != nil {
						t.Fatal(err)
					}
					if err := way.close(c); err != nil {
						t.Fatal(err)
					}
					got, err := io.ReadAll(s)
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("%d of %d bytes, %v", len(got), len(data), err)
					}
				})
			}
		}
	}
}

// TestDrainEnds: the bytes that Close reads from its socket are bounded, so that a peer that goes on sending can't delay it.
func TestDrainEnds(t *testing.T) {
	client, server := ossltest.Connected(t, tlstest.Loopback, func(c, _ *tls.Config) { c.MaxVersion = tls.VersionTLS13 })
	const much = ossl.MaxDrained + 40_000
	from, to := server.NetConn().(*net.TCPConn), client.NetConn().(*net.TCPConn)
	to.SetReadBuffer(4 * much)
	go func() {
		from.Write(make([]byte, much))
		from.CloseWrite()
	}()
	tlstest.AwaitArrival(t, to)
	client.Drain()
	left, err := io.Copy(io.Discard, to)
	if err != nil {
		t.Fatal(err)
	}
	if left < much-ossl.MaxDrained || left >= much {
		t.Errorf("%d of %d bytes are left; no more than %d may be taken", left, much, ossl.MaxDrained)
	}
}

// TestInteropDrain writes to openssl s_server, which sends a ticket and is then stopped until the client has closed.
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

// serveAll starts a tool's server that ends by itself. It returns what stands in a line of the output after prefix, and rest
// returns the output after that line once the server has ended.
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
