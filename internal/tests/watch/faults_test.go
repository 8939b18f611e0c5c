//go:build unix && (cgo || ossl_nocgo)

package watch

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
)

// TestUnreadable: a file that can't be opened is not taken for one that doesn't exist, nor a folder that
// can't be read for an empty one: the function, which may not mind if they are, isn't called.
func TestUnreadable(t *testing.T) {
	type row struct {
		name      string
		take, end func(folder string) error
		want      error
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	rows := []row{
		{"no descriptors", func(string) error {
			return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max})
		}, func(string) error { return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) }, syscall.EMFILE},
		{"a loop of links", func(folder string) error {
			file := filepath.Join(folder, "x")
			return errors.Join(os.Rename(file, filepath.Join(folder, ".kept")), os.Symlink("x", file))
		}, func(folder string) error {
			return os.Rename(filepath.Join(folder, ".kept"), filepath.Join(folder, "x"))
		}, syscall.ELOOP},
	}
	if os.Geteuid() != 0 { // root may read every file
		rows = append(rows, row{"no permission", func(folder string) error { return os.Chmod(folder, 0) },
			func(folder string) error { return os.Chmod(folder, 0o700) }, fs.ErrPermission})
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "folder")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, "x"), "x")
			loads := 0
			var events []error
			w := ossl.NewWatch(func() error { loads++; return nil }, folder)
			w.OnEvent = func(e ossl.WatchEvent) { events = append(events, e.Err) }
			if err := w.Reload(); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, "y"), "y")
			if err := r.take(folder); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				w.Check(t.Context())
			}
			err := w.Reload()
			if failed := r.end(folder); failed != nil {
				t.Fatal(failed)
			}
			if loads != 1 || len(events) != 1 || !errors.Is(events[0], r.want) || !errors.Is(err, r.want) {
				t.Errorf("loaded %d times, events %v, Reload: %v", loads, events, err)
			}
			w.Check(t.Context())
			if loads != 2 || len(events) != 2 || events[1] != nil {
				t.Errorf("then loaded %d times, events %v", loads, events)
			}
		})
	}
}

// TestHangs: nothing but the caller of Reload waits for a file system that hangs, for which a FIFO stands
// in: opening it takes until there is a writer.
func TestHangs(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	begun, ended := make(chan struct{}, 10), make(chan struct{}, 10)
	load := func() error {
		begun <- struct{}{}
		defer func() { ended <- struct{}{} }()
		_, err := os.ReadFile(fifo)
		return err
	}
	w := ossl.NewWatch(load, fifo)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if err := w.Start(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Start: %v", err)
	}
	other := ossl.NewWatch(load, fifo)
	other.Check(ctx) // which is done
	<-begun
	for range 3 {
		other.Check(t.Context()) // a check is under way
	}
	other.Close()
	if len(begun) != 0 {
		t.Error("loaded again")
	}
	for n := 0; n < 2; {
		writer, err := os.OpenFile(fifo, os.O_RDWR, 0) // doesn't wait for a reader
		if err != nil {
			t.Fatal(err)
		}
		_ = writer.Close()
		select {
		case <-ended:
			n++
		case <-time.After(time.Millisecond):
		}
	}
	if err := w.Reload(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Reload after Close: %v", err)
	}
}

// TestStart: the goroutine begins with Start, and ends with Close and with the context.
func TestStart(t *testing.T) {
	goroutines := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*Watch).run")
	}
	ends := func(what string) {
		t.Helper()
		for i := 0; goroutines() != 0; i++ {
			if i == 1000 {
				t.Fatalf("%s: the goroutine goes on", what)
			}
			time.Sleep(time.Millisecond)
		}
	}
	for _, how := range []string{"Close", "context"} {
		p := newPair(t)
		events := make(chan error, 10)
		p.OnEvent = func(e ossl.WatchEvent) { events <- e.Err }
		ends("before Start")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := p.Start(ctx, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		var refused *ossl.ConfigError
		if err := p.Start(ctx, 0); !errors.As(err, &refused) {
			t.Errorf("started again: %v", err)
		}
		write(t, p.a+".next", "garbage")
		if err := os.Rename(p.a+".next", p.a); err != nil {
			t.Fatal(err)
		}
		if err := <-events; err == nil {
			t.Error("garbage is used")
		}
		if goroutines() != 1 {
			t.Error("no goroutine")
		}
		if how == "Close" {
			p.Close()
			p.Close()
		} else {
			cancel()
		}
		ends(how)
	}
	p := newPair(t)
	if err := p.Start(t.Context(), -1); err == nil {
		t.Error("a negative interval")
	}
	p.write(t, "garbage")
	if err := p.Start(t.Context(), 0); err == nil {
		t.Error("garbage at first")
	}
	ends("a failed Start")
}
