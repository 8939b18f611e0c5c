//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnits: systemd finds nothing wrong with the units of folder deploy, and this program accepts
// their command lines.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	program, err := exec.LookPath("ossl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"ossl.service", "ossl.socket"} {
		text, err := os.ReadFile(filepath.Join("deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		const installed = "ExecStart=/usr/local/lib/ossl/ossl serve --config "
		if strings.HasSuffix(name, ".service") && !strings.Contains(string(text), "\n"+installed) {
			t.Errorf("%s has no %s", name, installed)
		}
		file := filepath.Join(dir, name)
		unit := strings.ReplaceAll(string(text), "/usr/local/lib/ossl/ossl", program)
		if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if text, err := exec.Command(analyze, append([]string{"verify"}, files...)...).CombinedOutput(); err != nil || len(text) > 0 {
		t.Errorf("%v\n%s", err, text)
	}
}
