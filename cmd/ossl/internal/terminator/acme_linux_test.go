package terminator_test

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// hang makes a FIFO in a folder. Processes that open it wait.
func hang(t *testing.T, folder, name string) (file string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(folder, name)
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestACMEDrainHangs: while the storage hangs, a server that drains closes its listeners.
func TestACMEDrainHangs(t *testing.T) {
	w := newWorld(t)
	c, folder := acmeConfig(w, "ossl", terminator.Site{Names: []string{"a.test"}, Root: w.folder(nil)})
	file := hang(t, filepath.Join(folder, "tls-alpn-01"), "x")
	if err := os.Chmod(c.ACME.Storage, 0o700); err != nil {
		t.Fatal(err)
	}
	r := w.start(c)
	writer, err := os.OpenFile(file, os.O_WRONLY, 0) // waits for the reader
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	drained := make(chan int, 1)
	go func() { drained <- r.Drain(ctx) }()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			break
		}
		_ = conn.Close()
		if time.Now().After(end) {
			t.Error("the server listens until the storage answers")
			break
		}
	}
	_ = writer.Close()
	<-drained
}

// TestACMEChallengesHang: while the storage hangs, only some of the clients that offer acme-tls/1 wait for it.
func TestACMEChallengesHang(t *testing.T) {
	w := newWorld(t)
	c, folder := acmeConfig(w, "ossl", terminator.Site{Names: []string{"a.test"}, Root: w.folder(nil)})
	file := hang(t, filepath.Join(folder, "tls-alpn-01"), "a.test")
	writer, err := os.OpenFile(file, os.O_RDWR, 0) // so that readers wait for a text
	if err != nil {
		t.Fatal(err)
	}
	config := terminator.ChallengeConfigs(c)
	const clients = 65 // one more than may wait
	failed := make(chan error, clients)
	for range clients {
		go func() {
			_, err := config(&tls.ClientHelloInfo{ServerName: "a.test"})
			failed <- err
		}()
	}
	select {
	case err := <-failed:
		if err == nil || !strings.Contains(err.Error(), "too many") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("all clients wait")
	}
	if _, err := config(&tls.ClientHelloInfo{ServerName: "b.test"}); err == nil || !strings.Contains(err.Error(), "no challenge") {
		t.Error(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	for range clients - 1 {
		<-failed
	}
}
