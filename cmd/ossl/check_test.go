package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestCheckInterrupted: an interruption stops the check of a server that never answers. The check
// prints the report of its results so far, and leaves no file.
func TestCheckInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		for n := 1; ; n++ {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if n == 2 { // the first only shows that the address can be reached
				cancel()
			}
		}
	}()
	dir := t.TempDir()
	var out, errs bytes.Buffer
	output := filepath.Join(dir, "report.txt")
	code := run(ctx, []string{"check", "--timeout", "1m", "--output", output, silent.Addr().String()}, &out, &errs)
	if code != exitInterrupted || !strings.Contains(errs.String(), "ossl: interrupted") {
		t.Errorf("exit status %d: %s", code, &errs)
	}
	for _, part := range []string{silent.Addr().String(), "to connect", "; interrupted"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the report has no %q:\n%s", part, &out)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("files are left: %v", files)
	}
}

// TestCheckTerminalClosed: a terminal that is closed interrupts a check as Ctrl-C does.
func TestCheckTerminalClosed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such signal")
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	// If nohup runs the tests, the process would ignore the signal too, unless there is a handler here.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	cmd := exec.Command("ossl", "check", "--timeout", "1m", silent.Addr().String())
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted || !strings.Contains(out.String(), "; interrupted") {
		t.Errorf("%v:\n%s", err, &out)
	}
}

// TestCheckMany: targets are audited a few at a time, their reports come in the order of the
// targets, and dead ones don't stop the others.
func TestCheckMany(t *testing.T) {
	t.Parallel()
	args := []string{"check", "--brief", "--no-timing", "--jobs", "50"}
	for i := range 50 {
		args = append(args, fmt.Sprintf("127.0.77.%d:1", i+1)) // tcpmux: nobody listens there
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, &out, &errs); code != exitUntested {
		t.Errorf("exit status %d: %s", code, &errs)
	}
	_, table, found := strings.Cut(out.String(), "\ntarget ")
	if !found {
		t.Fatalf("no table:\n%s", &out)
	}
	rows := strings.Split(strings.TrimSpace(table), "\n")[1:]
	at := 0
	for _, row := range rows {
		if at < 50 && strings.HasPrefix(row, args[5+at]+" ") {
			at++
		}
	}
	if at != 50 {
		t.Errorf("%d targets are in the table in order:\n%s", at, table)
	}
	if n := strings.Count(errs.String(), "checked "); n != 50 {
		t.Errorf("%d lines of progress", n)
	}
}

// TestCheckBadWords: texts that would break out of an HTTP line, and rates that bound nothing, are refused.
func TestCheckBadWords(t *testing.T) {
	for _, args := range [][]string{
		{"--replay", "--replay-path", "/ HTTP/1.1\r\nX: y"}, {"--server-name", "a\r\nX: y"}, {"--rate", "NaN"}, {"--rate", "1e-30"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"check", "127.0.0.1:1"}, args...), &out, &errs); code != exitUsage {
			t.Errorf("%q: exit status %d: %s", args, code, &errs)
		}
	}
}
