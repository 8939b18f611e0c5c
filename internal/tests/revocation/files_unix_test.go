//go:build unix && (cgo || ossl_nocgo)

package revocation

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl"
)

// TestPipe: a pipe in place of a list is refused, without a wait for its writer.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "list"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ossl.LoadCRLs(ossl.CRLFiles(dir)); err == nil {
		t.Error("a pipe has lists")
	}
}
