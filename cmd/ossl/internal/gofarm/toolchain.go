package gofarm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Toolchain is the Go that a command would use.
type Toolchain struct {
	Root    string // GOROOT
	ToolDir string // GOTOOLDIR
	Version string // "go1.26.8"
	NoCgo   bool   // programs are built without cgo, for a processor for which ossl has an object
}

// Find returns the toolchain that "go ARGS" uses in the current folder: the go command may switch to the one
// that go.mod or go.work asks for, or the go.mod of a package that is named with a version.
func Find(ctx context.Context, args []string) (Toolchain, error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return Toolchain{}, fmt.Errorf("%w: install Go from https://go.dev/dl, or put its bin folder into PATH", err)
	}
	env := os.Environ()
	if namesVersion(args) {
		if v, err := switchedTo(ctx, goCommand, args); err != nil {
			return Toolchain{}, err
		} else if v != "" {
			env = append(env, "GOTOOLCHAIN="+v)
		}
	}
	ask := []string{"env", "-json", "GOROOT", "GOTOOLDIR", "GOVERSION", "GOEXPERIMENT", "GOOS", "GOARCH", "CGO_ENABLED"}
	if dir := changesTo(args); dir != "" {
		ask = append([]string{"-C", dir}, ask...)
		ask[0], ask[1], ask[2] = ask[2], ask[0], ask[1]
	}
	cmd := exec.CommandContext(ctx, goCommand, ask...)
	cmd.Env = env
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if root := os.Getenv("GOROOT"); err != nil && isRemoved(root) {
		return Toolchain{}, fmt.Errorf("GOROOT, %s, was removed by \"ossl go clean\": run \"unset GOROOT GOTOOLCHAIN\"", root)
	}
	if err != nil {
		return Toolchain{}, goFailed(ctx, "go env", err, &told)
	}
	var answer struct{ GOROOT, GOTOOLDIR, GOVERSION, GOEXPERIMENT, GOOS, GOARCH, CGO_ENABLED string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return Toolchain{}, fmt.Errorf("go env: %w", err)
	}
	if strings.Contains(","+answer.GOEXPERIMENT+",", ",boringcrypto,") {
		return Toolchain{}, errors.New("GOEXPERIMENT=boringcrypto replaces crypto/tls's cryptography, and ossl its TLS: unset it")
	}
	t := Toolchain{Root: answer.GOROOT, ToolDir: answer.GOTOOLDIR, Version: strings.Fields(answer.GOVERSION + " ?")[0]}
	t.NoCgo = answer.CGO_ENABLED == "0" && answer.GOOS == "linux" && (answer.GOARCH == "amd64" || answer.GOARCH == "arm64")
	return t.real()
}

// real returns the toolchain to which a farm's links lead, if t is a farm.
func (t Toolchain) real() (Toolchain, error) {
	state, err := os.ReadFile(filepath.Join(t.Root, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	tools, err := filepath.Rel(t.Root, t.ToolDir)
	if err != nil {
		return t, err
	}
	t.Root = strings.TrimSuffix(string(state), "\n")
	t.ToolDir = filepath.Join(t.Root, tools)
	return t, nil
}

// isRemoved reports whether a GOROOT was a farm that doesn't exist any more.
func isRemoved(root string) bool {
	dir, err := Dir()
	if err != nil || filepath.Dir(root) != dir {
		return false
	}
	_, err = os.Stat(root)
	return errors.Is(err, os.ErrNotExist)
}

func goFailed(ctx context.Context, command string, err error, told *bytes.Buffer) error {
	if ctx.Err() != nil { // it was killed
		return context.Cause(ctx)
	}
	if text := strings.TrimSpace(told.String()); text != "" {
		return fmt.Errorf("%s: %s", command, text)
	}
	return fmt.Errorf("%s: %w", command, err)
}

// changesTo returns the folder of the flag -C, which the go command takes only as its first flag.
func changesTo(args []string) string {
	for i, a := range args[:min(len(args), 2)] {
		switch {
		case a == "-C" || a == "--C":
			if i+1 < len(args) {
				return args[i+1]
			}
		case strings.HasPrefix(a, "-C=") || strings.HasPrefix(a, "--C="):
			_, dir, _ := strings.Cut(a, "=")
			return dir
		}
	}
	return ""
}

// namesVersion reports whether the command is about packages of a module that is not the folder's.
func namesVersion(args []string) bool {
	if len(args) == 0 || args[0] != "install" && args[0] != "run" {
		return false
	}
	for _, a := range args[1:] {
		if name, version, ok := strings.Cut(a, "@"); ok && !strings.HasPrefix(a, "-") && name != "" && version != "" {
			return true
		}
	}
	return false
}

// switchedTo returns the version of the toolchain that the go command switches to, or "" if it doesn't
// switch. With -n, the command has no other effect than to download modules.
func switchedTo(ctx context.Context, goCommand string, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, goCommand, args...)
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -n"),
		"GODEBUG="+strings.TrimPrefix(os.Getenv("GODEBUG")+",toolchaintrace=1", ","))
	var told bytes.Buffer
	cmd.Stderr = &told // cmd/go prints both its trace and the commands there
	failed := cmd.Run()
	var rest bytes.Buffer
	for line := range strings.Lines(told.String()) {
		if choice, ok := strings.CutPrefix(line, "go: using "); ok && !strings.HasPrefix(choice, "local ") {
			version, _, _ := strings.Cut(choice, " ")
			return version, nil
		} else if !ok && !strings.HasPrefix(line, "go: default toolchain ") { // else a line of the trace
			rest.WriteString(line)
		}
	}
	if failed != nil {
		return "", goFailed(ctx, "go "+strings.Join(args, " "), failed, &rest)
	}
	return "", nil
}
