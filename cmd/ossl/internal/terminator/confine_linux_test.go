package terminator_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// confinedVariable is the environment variable of the process that TestConfined confines. It names
// the folder that TestConfined has prepared.
const confinedVariable = "OSSL_TEST_CONFINED"

// skipWithoutLandlock skips a test if the kernel has no Landlock that restricts connections.
func skipWithoutLandlock(t *testing.T) {
	t.Helper()
	if abi, err := terminator.LandlockVersion(); err != nil || abi < 4 {
		t.Skipf("Landlock of ABI 4 or later is missing in this kernel: version %d, %v", abi, err)
	}
}

// TestConfined: a process of its own serves with Landlock on, and then tries to leave its domain.
func TestConfined(t *testing.T) {
	skipWithoutLandlock(t)
	w := newWorld(t)
	for _, engine := range []string{"ossl", "go"} {
		t.Run(engine, func(t *testing.T) {
			outside := listen(t)
			cmd := exec.Command(os.Args[0], "-test.run=^TestConfinedProcess$", "-test.v")
			cmd.Env = append(os.Environ(), confinedVariable+"="+strings.Join([]string{w.folder(map[string]string{
				"site/index.html": "site", "outside/secret": "secret", "run/x": "",
			}), w.pair(false, "localhost").Cert, engine, outside.Addr().String()}, "|"))
			text, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(text), "--- PASS: TestConfinedProcess") {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

// TestConfinedProcess is the process of TestConfined.
func TestConfinedProcess(t *testing.T) {
	parts := strings.Split(os.Getenv(confinedVariable), "|")
	if len(parts) != 4 {
		t.Skip("it confines the process for good: " + confinedVariable + " is missing, which TestConfined sets")
	}
	folder, cert, engine, outside := parts[0], parts[1], parts[2], parts[3]
	c := &terminator.Config{Listen: []string{"127.0.0.1:0", "unix:" + filepath.Join(folder, "run/s")}, Engine: engine,
		Landlock: "on", Limits: terminator.DefaultLimits(), Sites: []terminator.Site{{Root: filepath.Join(folder, "site"),
			Pairs: []terminator.Pair{{Cert: cert, Key: strings.TrimSuffix(cert, ".pem") + "-key.pem"}}}}}
	s, err := settled(t, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Drain(context.Background())
	expectNoNewPrivileges(t)
	if !strings.HasPrefix(s.Landlock(), "ABI ") {
		t.Error(s.Landlock())
	}
	read := func(name string) func() error {
		return func() error { _, err := os.ReadFile(name); return err }
	}
	for _, try := range []struct {
		name    string
		do      func() error
		allowed bool
	}{
		{"read a file of the site", read(filepath.Join(folder, "site/index.html")), true},
		{"read the certificate", read(cert), true},
		{"read a file of the system", read("/etc/passwd"), true},
		{"read its own state", read("/proc/self/stat"), true},
		{"read a file outside", read(filepath.Join(folder, "outside/secret")), false},
		{"list a folder outside", func() error { _, err := os.ReadDir(filepath.Join(folder, "outside")); return err }, false},
		{"read through a descriptor's link", read("/proc/self/root" + filepath.Join(folder, "outside/secret")), false},
		{"write a file of the site", func() error {
			return os.WriteFile(filepath.Join(folder, "site/index.html"), []byte("x"), 0o600)
		}, false},
		{"make a file", func() error { return os.WriteFile(filepath.Join(folder, "site/new"), nil, 0o600) }, false},
		{"remove a file", func() error { return os.Remove(filepath.Join(folder, "site/index.html")) }, false},
		{"make a folder", func() error { return os.Mkdir(filepath.Join(folder, "run/new"), 0o700) }, false},
		{"make a socket", func() error {
			l, err := net.Listen("unix", filepath.Join(folder, "run/other"))
			if err == nil {
				err = l.Close()
			}
			return err
		}, true},
		{"run a shell", func() error { return exec.Command("/bin/sh", "-c", "true").Run() }, false},
		{"connect to a server", func() error {
			conn, err := net.Dial("tcp", outside)
			if err == nil {
				err = conn.Close()
			}
			return err
		}, false},
		{"write /dev/null", func() error {
			f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err == nil {
				err = f.Close()
			}
			return err
		}, true},
	} {
		err := try.do()
		if try.allowed && err != nil || !try.allowed && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", try.name, err)
		}
	}
	everyThread(t, read(filepath.Join(folder, "outside/secret")))

	later := *c
	later.Sites = []terminator.Site{c.Sites[0]}
	later.Sites[0].Root = filepath.Join(folder, "outside")
	if err := s.Reload(context.Background(), &later); err == nil || !strings.Contains(err.Error(), "landlock: ") {
		t.Errorf("a reload that names a folder outside: %v", err)
	}
	later.Sites[0].Root = c.Sites[0].Root
	if err := s.Reload(context.Background(), &later); err != nil {
		t.Errorf("a reload: %v", err)
	}
}

// settled starts a server in the process of a test, which is executed again for that.
func settled(t *testing.T, c *terminator.Config) (*terminator.Server, error) {
	t.Helper()
	in, err := terminator.Inherit()
	if err != nil {
		return nil, err
	}
	if in, err = terminator.Settle(c, in, func() error { return nil }); err != nil {
		in.Abandon()
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	s, err := terminator.StartWith(context.Background(), c, in, log, log)
	if err != nil {
		in.Abandon()
	}
	return s, err
}

// expectNoNewPrivileges checks that no thread can get privileges from a file.
func expectNoNewPrivileges(t *testing.T) {
	t.Helper()
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) == 0 {
		t.Fatalf("%q, %v", threads, err)
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if err == nil && !strings.Contains(string(status), "\nNoNewPrivs:\t1\n") {
			t.Errorf("%s:\n%s", thread, status)
		}
	}
}

// everyThread has old and new threads try something that is denied.
func everyThread(t *testing.T, try func() error) {
	t.Helper()
	var all, locked sync.WaitGroup
	start := make(chan struct{})
	threads := make(chan int, 50)
	locked.Add(cap(threads))
	for range cap(threads) {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked.Done()
			<-start // so that no thread is used twice
			threads <- syscall.Gettid()
			if err := try(); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("thread %d: %v", syscall.Gettid(), err)
			}
		})
	}
	locked.Wait()
	close(start)
	all.Wait()
	close(threads)
	seen := map[int]bool{}
	for id := range threads {
		seen[id] = true
	}
	if len(seen) != cap(threads) {
		t.Errorf("%d threads tried it", len(seen))
	}
}
