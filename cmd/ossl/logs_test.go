//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestLogOutputs: a log whose disk is full, whose reader has stopped, or whose reader is gone,
// neither stops the server nor keeps it from exiting, and the lost lines are counted.
func TestLogOutputs(t *testing.T) {
	for name, c := range map[string]struct {
		output func(t *testing.T) *os.File
		metric string
	}{
		"full": {func(t *testing.T) *os.File {
			f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}, "error"},
		"stopped": {func(t *testing.T) *os.File {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = read.Close() })
			return write
		}, "slow"},
		"gone": {func(t *testing.T) *os.File {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			_ = read.Close()
			return write
		}, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			output := c.output(t)
			cmd := exec.Command("ossl", "serve", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "unix:s",
				"--admin", "unix:admin", "--access-log", "public")
			cmd.Dir, cmd.Stderr = s.dir, output
			cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.path("notify"), "GORACE=atexit_sleep_ms=0")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = output.Close()
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			s.notified("READY=1")
			client := s.client("unix", s.path("s"), false, true)
			for range 200 { // lines of more than 4 KB
				resp, err := client.Get("https://localhost/" + strings.Repeat("x", 4<<10))
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			admin := &http.Client{Timeout: serverPatience, Transport: &http.Transport{DisableKeepAlives: true,
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "unix", s.path("admin"))
				}}}
			lost := func() int {
				resp, err := admin.Get("http://localhost/metrics")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				lost := regexp.MustCompile(`ossl_serve_lost_log_lines_total{reason="` + c.metric + `"} (\d+)`).FindSubmatch(text)
				if err != nil || lost == nil {
					t.Fatalf("%s, %v", text, err)
				}
				n, _ := strconv.Atoi(string(lost[1])) // digits
				return n
			}
			// A line is written after its response, and by another goroutine.
			for late := time.Now().Add(serverPatience); lost() < 50; <-time.After(10 * time.Millisecond) {
				if time.Now().After(late) {
					t.Fatalf("%d lines are lost", lost())
				}
			}
			s.closeIdle()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(serverPatience):
				t.Error("the server has not ended")
			}
		})
	}
}

// TestLogControls: no character of a client's reaches a terminal that could control it, or turn the
// direction of writing.
func TestLogControls(t *testing.T) {
	const path = "/a\u009b2J\u202e\x1b[1m\U000e0001\u00e9\n"
	for _, format := range []string{"text", "json"} {
		var lines bytes.Buffer
		output := terminator.NewLogWriter(&lines)
		log, err := (&serverFlags{logFormat: format, logLevel: "info"}).logger(output)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("request", "path", path)
		if !output.Close(t.Context()) {
			t.Fatal("the line was not written")
		}
		line := strings.TrimSuffix(lines.String(), "\n")
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s: %q", format, line)
		}
		if format == "json" {
			var got struct{ Path string }
			if err := json.Unmarshal([]byte(line), &got); err != nil || got.Path != path {
				t.Errorf("%q, %v", got, err)
			}
		}
	}
}
