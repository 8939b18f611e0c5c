package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCertFaults has system calls of "ossl cert" fail, and the process killed at them: a certificate and
// its key are there both or, if it failed, not at all; no hidden file stays; and a second run succeeds.
func TestCertFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("long: only without -short")
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace isn't installed")
	}
	if out, err := exec.Command(strace, "-f", "-o", os.DevNull, "-e", "trace=fsync", "true").CombinedOutput(); err != nil {
		t.Skipf("strace can't trace here: %s", out)
	}
	issue := func(dir string) []string {
		return []string{"ossl", "cert", "--dir", filepath.Join(dir, "ca"), "--out", dir, "a.test"}
	}
	for _, call := range []string{"fsync", "linkat", "fchmod", "flock"} {
		for _, fault := range []string{"error=EIO", "signal=KILL"} {
			t.Run(call+"/"+fault, func(t *testing.T) {
				t.Parallel()
				for n := 1; ; n++ {
					dir := t.TempDir()
					log := filepath.Join(t.TempDir(), "trace")
					args := append([]string{"-f", "-qq", "-o", log, "-e", "trace=" + call,
						"-e", fmt.Sprintf("inject=%s:%s:when=%d", call, fault, n)}, issue(dir)...)
					failed := exec.Command(strace, args...).Run()
					trace, err := os.ReadFile(log)
					if err != nil {
						t.Fatal(err)
					}
					if !strings.Contains(string(trace), "INJECTED") && failed == nil {
						if n == 1 {
							t.Error("the call never happened")
						}
						return
					}
					whole := checkFolder(t, dir, n, failed == nil, fault == "signal=KILL")
					out, err := exec.Command("ossl", issue(dir)[1:]...).CombinedOutput()
					if err != nil && !whole { // else its error is that the files exist
						t.Errorf("%d: the second run failed: %v: %s", n, err, out)
					}
					checkFolder(t, dir, n, true, false)
				}
			})
		}
	}
}

// checkFolder checks the files of "ossl cert" in a folder, and of its authority, and reports whether all
// are there.
func checkFolder(t *testing.T, dir string, n int, succeeded, killed bool) (whole bool) {
	t.Helper()
	whole = true
	for _, pair := range [][2]string{{"a.test-key.pem", "a.test.pem"}, {"ca/ca-key.pem", "ca/ca.pem"}} {
		_, keyErr := os.Stat(filepath.Join(dir, pair[0]))
		_, certErr := os.Stat(filepath.Join(dir, pair[1]))
		whole = whole && keyErr == nil && certErr == nil
		if succeeded && (keyErr != nil || certErr != nil) || certErr == nil && keyErr != nil ||
			!killed && (keyErr == nil) != (certErr == nil) {
			t.Errorf("%d: succeeded %v, key: %v, certificate: %v", n, succeeded, keyErr, certErr)
		}
	}
	for _, pattern := range []string{".ossl*", "ca/.ossl*"} {
		if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
			t.Errorf("%d: left behind: %q", n, left)
		}
	}
	return whole
}
