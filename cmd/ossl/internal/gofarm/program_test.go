package gofarm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build builds the command ossl, which the linker of a farm runs.
func build(t *testing.T) (ossl string) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the standard library: only without -short")
	}
	if os.Getenv("CGO_ENABLED") == "0" {
		t.Skip("needs cgo")
	}
	ossl = filepath.Join(t.TempDir(), "ossl")
	run(t, filepath.Join(repository, "cmd/ossl"), nil, "go", "build", "-o", ossl, ".")
	return ossl
}

// run runs a command and returns its output.
func run(t *testing.T, dir string, env []string, command ...string) string {
	t.Helper()
	out, err := tryTo(dir, env, command...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return out
}

func tryTo(dir string, env []string, command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestProgram runs the tests in testdata/program with Go's crypto/tls and with ossl as its engine: they see the
// same.
func TestProgram(t *testing.T) {
	ossl := build(t)
	const dir = "testdata/program"
	env := []string{"GOWORK=off", "GOFLAGS=-count=1"}
	run(t, dir, env, "go", "test", ".")
	ours := []string{ossl, "go", "--unknown-go", "--source", repository}
	run(t, dir, append(env, "ENGINE=ossl"), append(ours, "test", ".")...)
	run(t, dir, append(env, "OSSL_MODE=off"), append(ours, "test", ".")...)
	run(t, dir, append(env, "ENGINE=ossl", "OSSL_MODE=require"), append(ours, "test", "-run", "TestRequire", ".")...)
}
