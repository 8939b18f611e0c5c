//go:build cgo || ossl_nocgo

package ossl_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

// TestKeyLogWarning checks that the warning about the file reports whether others can read it, or
// own it.
func TestKeyLogWarning(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes on Windows")
	}
	defer slog.SetDefault(slog.Default())
	for _, c := range []struct {
		name  string
		mode  os.FileMode
		owner int // or 0
		want  string
	}{
		{"private", 0o600, 0, ""},
		{"for the group", 0o640, 0, "others have access to the file: its mode is 0640"},
		{"for all", 0o666, 0, "others have access to the file: its mode is 0666"},
		{"another owner", 0o600, 1234, "the file belongs to another user, 1234"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "keys")
			if err := os.WriteFile(file, nil, c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
			if c.owner != 0 {
				if os.Geteuid() != 0 {
					t.Skip("only root can give a file away: run the test as root")
				}
				if err := os.Chown(file, c.owner, -1); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("OSSL_KEYLOG", file)
			var log bytes.Buffer
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			if _, err := ossl.NewContext(tlstest.ClientConfig()); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(log.String(), "Its readers can decrypt") || !strings.Contains(log.String(), c.want) ||
				(c.want == "") == strings.Contains(log.String(), "danger=") {
				t.Errorf("the log is %q, want %q", log.String(), c.want)
			}
		})
	}
}
