//go:build cgo || ossl_nocgo

package keys_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl/keys"
)

// TestLoadPipe loads a damaged key from a named pipe. The search for the reason must not wait for
// a second writer.
func TestLoadPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	written := make(chan error, 1)
	go func() {
		written <- os.WriteFile(name, []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), 0o600)
	}()
	if _, err := keys.Load("file:" + name); err == nil {
		t.Error("it was loaded")

	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
