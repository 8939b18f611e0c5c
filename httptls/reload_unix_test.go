//go:build unix

package httptls_test

import (
	"encoding/pem"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/httptls"
)

// A file system that hangs doesn't delay handshakes for long.
func TestReloaderSlowFiles(t *testing.T) {
	first, second := leaf(ecKey()), leaf(ecKey())
	r, certFile, keyFile, _ := newReloader(t, first)
	httptls.SetPatience(r, time.Millisecond)
	writePairTo(t, second, "", keyFile)
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(certFile, 0o600); err != nil { // opening it blocks until there is a writer
		t.Fatal(err)
	}
	for range 3 {
		expectCert(t, r, first, "while the file hangs")
	}
	reloaded := make(chan error)
	go func() { reloaded <- r.Reload() }()
	// A reader of the pipe gets a certificate, and then the end.
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: second.Certificate[0]})
	for done := false; !done; {
		pipe, err := os.OpenFile(certFile, os.O_RDWR, 0) // doesn't wait for a reader
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pipe.Write(text); err != nil {
			t.Fatal(err)
		}
		_ = pipe.Close()
		select {
		case err := <-reloaded:
			if err != nil {
				t.Error(err)
			}
			done = true
		case <-time.After(time.Millisecond):
		}
	}
	r.Interval = -1
	expectCert(t, r, second, "when it has answered")
}
