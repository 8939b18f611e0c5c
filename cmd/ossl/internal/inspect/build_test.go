package inspect_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/inspect"
)

// The source of programs that TestBuilds builds, by file. Overlay replaces files of the standard library,
// as the farm of "ossl go" does.
var (
	programFiles = map[string]string{
		"go.mod": "module example.org/program\n\ngo 1.26.0\n",
		"tls/main.go": `package main

import "crypto/tls"

func main() { tls.Dial("tcp", "127.0.0.1:1", nil) }
`,
		"none/main.go": "package main\n\nfunc main() {}\n",
		"embeds/main.go": `package main

import (
	"crypto/tls"
	_ "embed"
)

//go:embed other
var other string

func main() { tls.Dial("tcp", other, nil) }
`,
		"embeds/other": mark("require"),
		"ossl.go": `package ossl

import "os"

var Marker = "\xffOSSL\xffunchanged\xff" + ` + "`" + `{"format":1,"version":"v0.1.0","mode":"prefer"}` + "`" + ` + "\x00"

//go:noinline
func Keep() {
	if len(os.Args) > 100 {
		println(Marker)
	}
}
`,
		"hook.go": `package tls

import "crypto/tls/internal/ossl"

func init() { ossl.Keep() }
`,
	}
	overlay = map[string]string{
		"src/crypto/tls/internal/ossl/ossl.go": "ossl.go",
		"src/crypto/tls/hook.go":               "hook.go",
	}
)

// TestBuilds: programs that the go command has built.
func TestBuilds(t *testing.T) {
	dir := t.TempDir()
	for name, text := range programFiles {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for file, with := range overlay {
		replace[filepath.Join(strings.TrimSpace(string(root)), file)] = filepath.Join(dir, with)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	farm := "-overlay=" + filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, program, env string
		flags              []string
		engine, reason     string
	}{
		{"none", "none", "CGO_ENABLED=1", nil, inspect.None, "no TLS"},
		{"crypto-tls", "tls", "CGO_ENABLED=1", []string{"-ldflags=-s -w"}, inspect.Go, "crypto/tls"},
		{"embeds", "embeds", "CGO_ENABLED=1", nil, inspect.Go, "embeds"},
		{"ossl", "tls", "CGO_ENABLED=1", []string{farm, "-ldflags=-s -w"}, inspect.OSSL, ""},
		{"ossl-without-cgo", "tls", "CGO_ENABLED=0", []string{farm}, inspect.OSSL, "cgo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := filepath.Join(dir, c.name+".out")
			build := exec.Command("go", append(append([]string{"build", "-o", program}, c.flags...), "./"+c.program)...)
			build.Dir = dir
			build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOOS=", "GOARCH=", c.env)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			p, err := inspect.ReadProgram(program)
			if err != nil {
				t.Fatal(err)
			}
			v := p.Judge("")
			if p.Engine != c.engine || v.OK != (c.reason == "") || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("engine %s, %+v; want %s, %q", p.Engine, v, c.engine, c.reason)
			}
			if p.Main.Path != "example.org/program" || p.GOARCH != runtime.GOARCH || *p.CGO != (c.env == "CGO_ENABLED=1") {
				t.Errorf("%+v", p)
			}
			if c.engine == inspect.OSSL && p.Unchanged.Mode != "prefer" {
				t.Errorf("%+v", p.Unchanged)
			}
		})
	}
}
