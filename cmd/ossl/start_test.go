//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestStartWatch: if a start takes too long, the process exits with an error. If a signal or the
// command's context stops the start, it exits without an error.
func TestStartWatch(t *testing.T) {
	for _, c := range []struct {
		name     string
		patience time.Duration
		ended    error // the cause of the context's end
		status   int
		want     string
	}{
		{"late", time.Millisecond, nil, 1, `level=ERROR msg="the start is not complete in time`},
		{"SIGTERM before the watch", time.Hour, interrupted{syscall.SIGTERM}, 0, `msg="ending during the start" signal=terminated`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			if c.ended != nil {
				cancel(c.ended)
			}
			var out bytes.Buffer
			output := terminator.NewLogWriter(&out)
			status := make(chan int, 1)
			w := &startWatch{ctx: ctx, patience: c.patience, log: slog.New(slog.NewTextHandler(output, nil)), output: output,
				exit: func(n int) { status <- n }}
			w.begin()
			if got := <-status; got != c.status || !strings.Contains(out.String(), c.want) {
				t.Errorf("status %d, want %d; log %q, want %q", got, c.status, out.String(), c.want)
			}
		})
	}
	t.Run("SIGHUP before the watch", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(interrupted{syscall.SIGHUP})
		output := terminator.NewLogWriter(io.Discard)
		status := make(chan int, 1)
		w := &startWatch{ctx: ctx, patience: 100 * time.Millisecond, log: slog.New(slog.DiscardHandler), output: output,
			exit: func(n int) { status <- n }}
		w.begin()
		if got := <-status; got != exitFailure { // by the time alone
			t.Errorf("status %d", got)
		}
	})
}

// TestSignalDuringStart: if a start hangs in a file system, a signal stops it at once, before and
// after the program is executed again.
func TestSignalDuringStart(t *testing.T) {
	s := newService(t)
	fifo := s.path("fifo") // whose open waits for a writer
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"the configuration": {"serve", "--config", "fifo"},
		"a certificate":     {"serve", "--listen", "unix:s", "--cert", "fifo", "--key", "localhost-key.pem", "public"},
	} {
		for _, end := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			t.Run(name+" "+end.String(), func(t *testing.T) {
				cmd := exec.Command("ossl", args...)
				cmd.Dir = s.dir
				var log bytes.Buffer
				cmd.Stderr = &log
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill() })
				writer := awaitReader(t, fifo) // the process is in its open or its read now
				defer writer.Close()
				if err := cmd.Process.Signal(end); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Wait(); err != nil {
					t.Errorf("%v\n%s", err, log.String())
				}
				if !strings.Contains(log.String(), "ending during the start") {
					t.Errorf("log %q", log.String())
				}
			})
		}
	}
}

// TestSignalAnyTime: SIGTERM stops a start at any time, also while the program is executed again.
func TestSignalAnyTime(t *testing.T) {
	s := newService(t)
	number := 100
	if testing.Short() {
		number = 10
	}
	for i := range number {
		cmd := exec.Command("ossl", "serve", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "unix:s", "public")
		cmd.Dir = s.dir
		var log bytes.Buffer
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 60 * time.Millisecond / time.Duration(number)) // the time of a start
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(serverPatience, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		var exit *exec.ExitError
		if !late.Stop() || err != nil && (!errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM) {
			t.Fatalf("%d: %v\n%s", i, err, log.String())
		}
	}
}

// awaitReader opens a named pipe as soon as it has a reader.
func awaitReader(t *testing.T, fifo string) *os.File {
	t.Helper()
	for late := time.Now().Add(serverPatience); time.Now().Before(late); time.Sleep(time.Millisecond) {
		f, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			return f
		}
		if !errors.Is(err, unix.ENXIO) { // nobody reads it yet
			t.Fatal(err)
		}
	}
	t.Fatal("nobody reads the pipe")
	return nil
}

// TestRestartConfines: a restart with Landlock, of a process without it, executes the new process again,
// with the sockets and keys of the former one.
func TestRestartConfines(t *testing.T) {
	s := newService(t)
	socket := s.path("s")
	config := func(landlock string) {
		s.write("sites.toml", "listen = [\"unix:"+socket+"\"]\nlandlock = \""+landlock+"\"\n[[site]]\n"+
			"cert = \"localhost.pem\"\nkey = \"localhost-key.pem\"\nroot = \"public\"\n")
	}
	config("off")
	s.start("serve", "--config", "sites.toml")
	s.await("landlock=off")
	client := &tls.Config{RootCAs: s.roots, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	s.visit(socket, client)
	config("auto")
	s.restart()
	s.await(`landlock="`)
	s.wait(s.firstEnded) // so that the new process has the next connection
	if !s.visit(socket, client) {
		t.Error("the new process has not resumed")
	}
	s.stop()
	if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's path is left: %v", err)
	}
}

// TestConfigurationOfPipe: a configuration that can be read only once is enough for a start.
func TestConfigurationOfPipe(t *testing.T) {
	s := newService(t)
	cmd := exec.Command("ossl", "serve", "--config", "/dev/stdin")
	cmd.Stdin = strings.NewReader("listen = [\"unix:s\"]\n[[site]]\n" +
		"cert = \"localhost.pem\"\nkey = \"localhost-key.pem\"\nroot = \"public\"\n")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.path("notify"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	s.notified("READY=1")
	s.visit(s.path("s"), &tls.Config{RootCAs: s.roots, ServerName: "localhost"})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestFailedStartSockets: a start that fails leaves no socket behind, and a restart that fails leaves the
// former process's.
func TestFailedStartSockets(t *testing.T) {
	s := newService(t)
	socket := s.path("s")
	config := func(user string) {
		s.write("sites.toml", "listen = [\"unix:"+socket+"\"]\nuser = \""+user+"\"\n[[site]]\n"+
			"cert = \"localhost.pem\"\nkey = \"localhost-key.pem\"\nroot = \"public\"\n")
	}
	config("no-such-user") // which is found out last
	cmd := exec.Command("ossl", "serve", "--config", "sites.toml")
	cmd.Dir = s.dir
	if text, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(text), "unknown user") {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's path is left: %v", err)
	}
	config("")
	s.start("serve", "--config", "sites.toml")
	config("no-such-user")
	s.signal(syscall.SIGUSR2)
	s.await("restart failed, this process goes on")
	s.visit(socket, &tls.Config{RootCAs: s.roots, ServerName: "localhost"})
	config("")
	s.stop("unknown user", "restart failed")
}
