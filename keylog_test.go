//go:build cgo

package ossl_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestFilesOfLesserUser checks that the user who starts a program with more rights, with the
// set-user-ID bit for example, can't make it write to a file.
func TestFilesOfLesserUser(t *testing.T) {
	defer ossl.SetPrivileged()()
	for _, variable := range []string{"OSSL_KEYLOG", "OSSL_TRACE"} {
		t.Run(variable, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "file")
			t.Setenv(variable, name)
			var e *ossl.ConfigError
			if _, err := ossl.NewContext(tlstest.ClientConfig()); !errors.As(err, &e) || e.Field != variable {
				t.Errorf("NewContext returns %v", err)
			}
			if _, err := os.Stat(name); !os.IsNotExist(err) {
				t.Errorf("the file was made: %v", err)
			}
		})
	}
}
