package load_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ossl-go/ossl/ci/internal/load"
)

// TestVisitNotReady: a client that must not begin ends at once, and not at the end of its time.
func TestVisitNotReady(t *testing.T) {
	client := filepath.Join(t.TempDir(), "client")
	if err := os.WriteFile(client, []byte("#!/bin/sh\necho ready\nexec cat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("not ready")
	v := load.Visit{Program: client, Turn: time.Hour}
	if _, _, err := v.Run(t.Context(), time.Hour, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}
