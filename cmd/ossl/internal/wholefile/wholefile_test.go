package wholefile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/wholefile"
)

func write(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// holds compares the contents of all files in a folder.
func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(want) {
		t.Errorf("files: %v, error %v, want %q", entries, err, want)
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s is %q, error %v, want %q", name, got, err, text)
		}
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := wholefile.Replace(name, write("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := wholefile.Replace(name, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	holds(t, dir, map[string]string{"file": "old"})
	if err := wholefile.CheckReplace(name); err != nil {
		t.Error(err)
	}
	holds(t, dir, map[string]string{"file": "old"})
	if err := wholefile.Replace(name, write("new")); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, map[string]string{"file": "new"})
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v, %v", info, err)
	}
}

// To replace /dev/null by a file would harm the whole host.
func TestReplaceOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := wholefile.Replace(file, write("kept")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{link, dir} {
		for _, err := range []error{wholefile.Replace(name, write("new")), wholefile.CheckReplace(name)} {
			if err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	holds(t, dir, map[string]string{"file": "kept", "link": "kept"})
}

// All files are created, or none.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := wholefile.Create(wholefile.File{Name: b, Mode: 0o644, Text: []byte("first")}); err != nil {
		t.Fatal(err)
	}
	both := []wholefile.File{{Name: a, Mode: 0o600, Text: []byte("second")}, {Name: b, Mode: 0o644, Text: []byte("second")}}
	if err := wholefile.Create(both...); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), b) {
		t.Error(err)
	}
	holds(t, dir, map[string]string{"b": "first"})
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Create(both...); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, map[string]string{"a": "second", "b": "second"})
	for name, mode := range map[string]fs.FileMode{a: 0o600, b: 0o644} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode && runtime.GOOS != "windows" {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := wholefile.Create(wholefile.File{Name: filepath.Join(dir, "missing", "c")}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestLock(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no locks of folders")
	}
	dir := t.TempDir()
	var holders atomic.Int32 // since the race detector knows no locks of files
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			defer wholefile.Lock(dir)()
			if n := holders.Add(1); n != 1 {
				t.Errorf("%d hold the lock", n)
			}
			holders.Add(-1)
		})
	}
	all.Wait()
	wholefile.Lock(filepath.Join(dir, "missing"))()
}

// TestPut: a file is written with its mode, also in the place of one with another mode.
func TestPut(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, text := range []string{"old", "new"} {
		if err := wholefile.Put(wholefile.File{Name: name, Mode: 0o600, Text: []byte(text)}); err != nil {
			t.Fatal(err)
		}
		holds(t, dir, map[string]string{"file": text})
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := wholefile.Put(wholefile.File{Name: dir, Mode: 0o600}); err == nil {
		t.Error("a folder was replaced")
	}
}

// TestTryLock: a file is locked for others, until it is unlocked.
func TestTryLock(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // which has no such locks
	}
	name := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		unlock, locked, err := wholefile.TryLock(name)
		if err != nil || !locked {
			t.Fatal(locked, err)
		}
		if _, locked, err := wholefile.TryLock(name); err != nil || locked {
			t.Errorf("locked twice: %v, %v", locked, err)
		}
		unlock()
	}
	if _, _, err := wholefile.TryLock(filepath.Join(name, "none")); err == nil {
		t.Error("no error for a file that can't be made")
	}
}
