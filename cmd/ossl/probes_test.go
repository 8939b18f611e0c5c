//go:build linux

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
)

// TestProbes stops a program in a debugger at the functions at which tracing tools see plaintext,
// on both record paths. This test is the program too. docs/OBSERVABILITY.md describes the
// functions.
func TestProbes(t *testing.T) {
	const program = "OSSL_TEST_PROBES"
	if os.Getenv(program) != "" {
		talk(t)
		return
	}
	if testing.Short() {
		t.Skip("compiles the program once more: only without -short")
	}
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		t.Skip("gdb is not installed")
	}
	withSymbols := filepath.Join(t.TempDir(), "probes.test") // go test links without them
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", withSymbols, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	for _, path := range []string{"direct", "libssl"} {
		t.Run(path, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), gdb, "-batch", "-nx",
				"-ex", "set debuginfod enabled off",
				"-ex", `dprintf ossl_probe_read, "\nprobe read %d %d %s\n", num, fd, (char *)buf`,
				"-ex", `dprintf ossl_probe_write, "\nprobe write %d %d %s\n", num, fd, (char *)buf`,
				"-ex", "run", "--args", withSymbols, "-test.run=^TestProbes$")
			cmd.Env = append(os.Environ(), program+"=1", "OSSL_RECORDS="+path)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("gdb: %v\n%s", err, out)
			}
			var client, server int
			var probes []string
			for line := range strings.Lines(string(out)) {
				if probe, ok := strings.CutPrefix(line, "probe "); ok {
					probes = append(probes, strings.TrimSpace(probe))
				}
				_, _ = fmt.Sscanf(line, "sockets %d %d", &client, &server)
			}
			want := []string{
				fmt.Sprintf("write 9 %d question", client), fmt.Sprintf("read 9 %d question", server),
				fmt.Sprintf("write 7 %d answer", server), fmt.Sprintf("read 7 %d answer", client),
			}
			if client == 0 || !slices.Equal(probes, want) {
				t.Errorf("probes %q, want %q\n%s", probes, want, out)
			}
		})
	}
}

// talk sends a text each way. Each has a zero byte at its end, for the debugger.
func talk(t *testing.T) {
	made := httptest.NewTLSServer(nil) // for its certificate
	defer made.Close()
	roots := x509.NewCertPool()
	roots.AddCert(made.Certificate())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	rawClient, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	rawServer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nsockets %d %d\n", descriptor(t, rawClient), descriptor(t, rawServer))
	client := ossl.Client(rawClient, &tls.Config{ServerName: "127.0.0.1", RootCAs: roots})
	server := ossl.Server(rawServer, &tls.Config{Certificates: made.TLS.Certificates})
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, 100)
		_, err := server.Read(buf)
		if err == nil {
			_, err = server.Write([]byte("answer\x00"))
		}
		done <- err
	}()
	_, err = client.Write([]byte("question\x00"))
	if err == nil {
		_, err = client.Read(make([]byte, 100))
	}
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
}

func descriptor(t *testing.T, conn net.Conn) (fd int) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(n uintptr) { fd = int(n) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
