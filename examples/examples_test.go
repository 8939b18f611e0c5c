// Package examples holds programs that use ossl, one for each kind of user. ci/proxy builds them
// from released modules, runs them and checks their output.
package examples

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShort: each program is one file that is read in a minute.
func TestShort(t *testing.T) {
	for _, dir := range programs(t) {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) != 1 {
			t.Errorf("%s: Go files %q, %v; want one", dir, files, err)
			continue
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")); lines > 80 {
			t.Errorf("%s has %d lines, more than 80", files[0], lines)
		}
	}
}

// TestUsed: each program is linked from README.md or a guide, and run by ci/proxy.
func TestUsed(t *testing.T) {
	guides, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	linked := ""
	for _, guide := range append(guides, "../README.md") {
		linked += read(t, guide)
	}
	script := read(t, "../ci/proxy")
	for _, dir := range programs(t) {
		if !strings.Contains(linked, "examples/"+dir+"/main.go)") {
			t.Errorf("no document links examples/%s/main.go", dir)
		}
		if !strings.Contains(script, " "+dir+` "$core`) {
			t.Errorf("ci/proxy doesn't run %s", dir)
		}
	}
}

// programs lists the folders with programs.
func programs(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*/main.go")
	if err != nil || len(found) < 6 {
		t.Fatalf("programs %q, %v; want six", found, err)
	}
	var dirs []string
	for _, file := range found {
		dirs = append(dirs, filepath.Dir(file))
	}
	return dirs
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
