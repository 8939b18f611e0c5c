package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/doctor"
)

// TestInputInterrupted: an interruption stops a command that waits for standard input.
func TestInputInterrupted(t *testing.T) {
	in, silent := io.Pipe()
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(20*time.Millisecond, cancel).Stop()
	if _, err := readInput(ctx, in, "-"); err != context.Canceled {
		t.Error(err)
	}
	if err := inputError("--file", ctx.Err()); err != context.Canceled {
		t.Error(err)
	}
}

// TestInputBounded: a file without an end isn't read for ever.
func TestInputBounded(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{{"check", "--roots", "/dev/zero", "x"}, {"check", "--file", "/dev/zero"},
		{"trace", "--roots", "/dev/zero", "x:443"}, {"bench", "x:443", "--yes-this-is-mine", "--roots", "/dev/zero"}} {
		var out, errs bytes.Buffer
		code := run(t.Context(), args, &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), "/dev/zero has more than") {
			t.Errorf("%q: exit status %d: %s", args, code, &errs)
		}
	}
}

// TestNothingControls: texts of a configuration, a list of targets or a command line don't control a
// terminal.
func TestNothingControls(t *testing.T) {
	dir := t.TempDir()
	const hostile = "\x1b[31m\u009b2J\u202e"
	config, targets := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "targets")
	text := "ssl_protocols " + hostile + ";\nssl_" + hostile + " on;\nssl_ciphers \"a\x1b]0;x\x07\";\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(targets, []byte(hostile+"\nhttps://x:"+hostile+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nginx := []string{"config", "nginx", "--server-version", "1.22.1", "--openssl-version", "3.0.11"}
	for _, args := range [][]string{
		append(nginx, "--from", config), append(nginx, "--from", hostile), append(nginx, "--policy", hostile+".json"),
		{"check", "--file", targets}, {"check", hostile}, {"check", "--at", hostile, "x"}, {hostile}, {"check", "--" + hostile},
		{"policy", "show", hostile},
	} {
		var out, errs bytes.Buffer
		run(t.Context(), args, &out, &errs)
		if text := out.String() + errs.String(); strings.ContainsAny(text, "\x1b\u009b\u202e\x07") || text == "" {
			t.Errorf("%q writes %q", args, text)
		}
	}
}

// TestDoctorNothingControls: any user can name a process, and root runs the doctor.
func TestDoctorNothingControls(t *testing.T) {
	var out bytes.Buffer
	item := doctor.Item{ID: "processes", Found: []string{"\x1b]0;x\x07 (17): /tmp/libssl\u009b2J.so"}}
	writeDoctor(&out, &doctor.Report{Items: []doctor.Item{item}})
	if strings.ContainsAny(out.String(), "\x1b\u009b\x07") || !strings.Contains(out.String(), "(17): /tmp/libssl") {
		t.Errorf("it writes %q", &out)
	}
}
