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
	ours := []string{ossl, "go", "--source", repository}
	run(t, dir, append(env, "ENGINE=ossl"), append(ours, "test", ".")...)
	run(t, dir, append(env, "OSSL_MODE=off"), append(ours, "test", ".")...)
	run(t, dir, append(env, "ENGINE=ossl", "OSSL_MODE=require"), append(ours, "test", "-run", "TestRequire", ".")...)
}

// TestProgramWithoutCgo is TestProgram in a build without cgo. Then the farm has ossl's object.
func TestProgramWithoutCgo(t *testing.T) {
	ossl := build(t)
	if _, err := os.Stat(filepath.Join(repository, "nocgo/internal/object/object.go")); err != nil {
		t.Skip("needs the objects: ci/nocgo makes them, and runs this test")
	}
	const dir = "testdata/program"
	env := []string{"GOWORK=off", "GOFLAGS=-count=1", "CGO_ENABLED=0", "ENGINE=ossl"}
	ours := []string{ossl, "go", "--source", repository}
	run(t, dir, env, append(ours, "test", ".")...)
	out := filepath.Join(t.TempDir(), "tiny")
	if told := run(t, "testdata/tiny", env, append(ours, "--mode", "require", "build", "-o", out, ".")...); told != "" {
		t.Errorf("the build prints %s", told)
	}
	run(t, dir, nil, ossl, "inspect", "--require", "require", out)
}

// plainOverlay returns the name of an overlay for the farm in root. With it, crypto/tls lacks ossl.
func plainOverlay(t *testing.T, root string) string {
	t.Helper()
	facade := filepath.Join(root, "src/crypto/tls/ossl_facade.go")
	text, err := os.ReadFile(facade)
	if err != nil {
		t.Fatal(err)
	}
	plain, overlay := filepath.Join(t.TempDir(), "plain.go"), filepath.Join(t.TempDir(), "overlay.json")
	for name, data := range map[string]string{
		plain:   strings.Replace(string(text), `_ "`+osslPath+`/hook"`, "", 1),
		overlay: `{"Replace": {"` + facade + `": "` + plain + `"}}`,
	} {
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// rootOf returns the GOROOT in the output of "ossl go env".
func rootOf(environment string) string {
	root, _, _ := strings.Cut(strings.SplitAfter(environment, "GOROOT='")[1], "'")
	return root
}

// TestLostEngine: no program is built with plain crypto/tls in silence.
func TestLostEngine(t *testing.T) {
	ossl := build(t)
	const dir = "testdata/tiny"
	env := []string{"GOWORK=off", "GOFLAGS=", "GOEXPERIMENT="}
	command := func(mode string, args ...string) []string {
		return append([]string{ossl, "go", "--source", repository, "--mode", mode}, args...)
	}
	environment := run(t, dir, env, command("prefer", "env")...)
	root := rootOf(environment)
	within := append([]string{"sh", "-c", `eval "$0" && exec "$@"`, environment}, command("prefer", "env")...)
	if again := run(t, dir, env, within...); again != environment {
		t.Errorf("within the environment, env prints %s", again)
	}
	failing := append([]string{"sh", "-c", `eval "$("$@")"`, "sh"}, command("prefer", "env")...)
	if _, err := tryTo(dir, append(env, "GOEXPERIMENT=boringcrypto"), failing...); err == nil {
		t.Error("eval succeeds although env fails")
	}
	// The user's GOROOT, GOTOOLCHAIN and OSSL_COMMAND don't count, nor another mode's.
	goroot := strings.TrimSpace(run(t, dir, env, "go", "env", "GOROOT"))
	for _, other := range []string{goroot, root} {
		out := filepath.Join(t.TempDir(), "tiny")
		run(t, dir, append(env, "GOROOT="+other, "GOTOOLCHAIN=auto", "OSSL_COMMAND=/bin/false"),
			command("require", "build", "-o", out, ".")...)
		run(t, dir, nil, ossl, "inspect", "--require", "require", out)
	}
	overlay := plainOverlay(t, root)
	const static = "-ldflags=-linkmode=external -extldflags=-static"
	for name, c := range map[string]struct {
		mode    string
		env     []string
		args    []string
		fails   bool
		message string // a part of the output; "" if there must be none
	}{
		"stripped":                {"prefer", nil, []string{"-ldflags=-s -w"}, false, ""},
		"trimpath":                {"require", nil, []string{"-trimpath"}, false, ""},
		"long arguments":          {"require", nil, []string{"-ldflags=-X=main.x=" + strings.Repeat("x", 40_000)}, false, ""},
		"c-shared":                {"require", nil, []string{"-buildmode=c-shared"}, false, ""},
		"without cgo":             {"prefer", []string{"CGO_ENABLED=0", "GOARCH=386"}, nil, false, "without cgo"},
		"without cgo, require":    {"require", []string{"CGO_ENABLED=0", "GOARCH=386"}, nil, true, "mode_require_needs_CGO_ENABLED_1"},
		"static":                  {"prefer", nil, []string{static}, false, "statically"},
		"static, require":         {"require", nil, []string{static}, true, "statically"},
		"another overlay":         {"prefer", nil, []string{"-overlay=" + overlay}, true, "crypto/tls"},
		"overlay in GOFLAGS":      {"prefer", []string{"GOFLAGS=-overlay=" + overlay}, nil, true, "crypto/tls"},
		"boringcrypto":            {"prefer", []string{"GOEXPERIMENT=boringcrypto"}, nil, true, "boringcrypto"},
		"a Go that isn't allowed": {"prefer", []string{"GOTOOLCHAIN=go1.999.9"}, nil, true, "go1.999.9"},
	} {
		out := filepath.Join(t.TempDir(), "tiny")
		args := append(append([]string{"build", "-o", out}, c.args...), ".")
		got, err := tryTo(dir, append(env, c.env...), command(c.mode, args...)...)
		if (err != nil) != c.fails || c.message == "" && got != "" || !strings.Contains(got, c.message) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		if _, err := os.Stat(out); (err != nil) != c.fails {
			t.Errorf("%s: the program: %v", name, err)
		}
	}
}

// TestBoth: a program imports the module ossl too.
func TestBoth(t *testing.T) {
	ossl := build(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/both\n\ngo 1.26.0\n\nrequire github.com/ossl-go/ossl v0.1.0\n\n" +
			"replace github.com/ossl-go/ossl => " + repository + "\n",
		"main.go": `package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/ossl-go/ossl"
)

func main() {
	a, b := net.Pipe()
	go func() { // answers each client with an alert
		buffer := make([]byte, 1<<16)
		for {
			b.Read(buffer)
			b.Write([]byte{21, 3, 3, 0, 2, 2, 40})
		}
	}()
	a.SetDeadline(time.Now().Add(time.Minute))
	config := &tls.Config{ServerName: "localhost"}
	fmt.Println(ossl.Client(a, config).Handshake())
	fmt.Println(tls.Client(a, config).Handshake())
}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := run(t, dir, []string{"GOWORK=off", "GOFLAGS="}, ossl, "go", "--source", repository, "run", ".")
	const want = "remote error: tls: handshake failure\n"
	if out != want+want {
		t.Errorf("the program prints %q", out)
	}
	ours := []string{ossl, "go", "--source", repository, "--mode", "require"}
	root := rootOf(run(t, dir, []string{"GOWORK=off"}, append(ours, "env")...))
	out, err := tryTo(dir, []string{"GOWORK=off", "GOFLAGS="}, append(ours, "build", "-overlay="+plainOverlay(t, root), ".")...)
	if err == nil || !strings.Contains(out, "the linked program lacks ossl") {
		t.Errorf("with an overlay: %v\n%s", err, out)
	}
}

// TestEmbedded: a program embeds another one with another mark, so that its own is unknown.
func TestEmbedded(t *testing.T) {
	ossl := build(t)
	dir := t.TempDir()
	env := []string{"GOWORK=off", "GOFLAGS="}
	command := func(mode string, args ...string) []string {
		return append([]string{ossl, "go", "--source", repository, "--mode", mode}, args...)
	}
	run(t, "testdata/tiny", env, command("prefer", "build", "-o", filepath.Join(dir, "inner"), ".")...)
	for name, text := range map[string]string{
		"go.mod": "module example.org/outer\n\ngo 1.26.0\n",
		"main.go": `package main

import (
	"crypto/tls"
	_ "embed"
)

//go:embed inner
var inner string

func main() {
	_, err := tls.Dial("tcp", inner, nil)
	println(err.Error())
}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, env, command("prefer", "build", ".")...)
	out, err := tryTo(dir, env, command("require", "build", ".")...)
	if err == nil || !strings.Contains(out, "it embeds another program") {
		t.Errorf("%v\n%s", err, out)
	}
}
