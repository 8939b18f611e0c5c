//go:build (cgo || ossl_nocgo) && unix

package observe

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestTraceToPipe checks that a named pipe that nobody reads is an error, and not an endless wait.
func TestTraceToPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OSSL_TRACE", name)
	var e *ossl.ConfigError
	if _, err := ossl.NewContext(tlstest.ClientConfig()); !errors.As(err, &e) || e.Field != "OSSL_TRACE" {
		t.Errorf("NewContext returns %v", err)
	}
}
