package load_test

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/ossl-go/ossl/ci/internal/load"
)

// TestVisitNotReady: a client that must not begin ends at once, and not at the end of its time.
func TestVisitNotReady(t *testing.T) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip("no cat")
	}
	failed := errors.New("not ready")
	// In the client's place is a script, of which the client's arguments are those that it ignores.
	v := load.Visit{Wrapper: []string{"/bin/sh", "-c", "echo ready; exec " + cat}, Program: "client", Turn: time.Hour}
	if _, _, err := v.Run(t.Context(), time.Hour, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}
