//go:build unix

package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/localca"
)

// TestSystemdSockets: a server with sockets that its parent holds is replaced by another one, and a
// client that comes in between is not refused.
func TestSystemdSockets(t *testing.T) {
	dir := t.TempDir()
	authority, err := localca.Open(filepath.Join(dir, "ca"), "")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(localca.Request{Names: []string{"127.0.0.1"}, Lifetime: time.Hour}, dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate)

	serve := func() *exec.Cmd {
		t.Helper()
		cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec ossl serve --listen systemd --cert "$1" --key "$2" "$3"`,
			"sh", pair.CertificateFile, pair.KeyFile, t.TempDir())
		cmd.ExtraFiles = []*os.File{socket}
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		line, err := bufio.NewReader(stderr).ReadString('\n')
		if err != nil || !strings.Contains(line, "listening") {
			t.Fatalf("%q, %v", line, err)
		}
		go func() { _, _ = io.Copy(io.Discard, stderr) }()
		return cmd
	}
	get := func() error {
		client := &http.Client{Timeout: serverPatience, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
		resp, err := client.Get("https://" + l.Addr().String() + "/")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	first := serve()
	if err := get(); err != nil {
		t.Fatal(err)
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	between := make(chan error, 1)
	go func() { between <- get() }()
	serve()
	if err := <-between; err != nil {
		t.Errorf("a client between two servers: %v", err)
	}
}
