//go:build unix && (cgo || ossl_nocgo)

package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
)

// A pair is two files that fit together if they have the same text, and a Watch of them.
type pair struct {
	*ossl.Watch
	dir    string
	a, b   string
	used   string // the text in use
	loads  int
	err    error // if not nil, loading fails with it
	events []error
}

// newPair makes two files with the text "one", and loads them.
func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{dir: t.TempDir()}
	p.a, p.b = filepath.Join(p.dir, "a"), filepath.Join(p.dir, "b")
	p.write(t, "one")
	return p.watch(t)
}

func (p *pair) watch(t *testing.T) *pair {
	t.Helper()
	p.Watch = ossl.NewWatch(p.load, p.a, p.b)
	p.OnEvent = func(e ossl.WatchEvent) {
		if !slices.Equal(e.Paths, []string{p.a, p.b}) {
			t.Errorf("an event of %q", e.Paths)
		}
		p.events = append(p.events, e.Err)
	}
	if err := p.Reload(); err != nil || p.used != "one" {
		t.Fatalf("%q, %v", p.used, err)
	}
	return p
}

func (p *pair) load() error {
	p.loads++
	if p.err != nil {
		return p.err
	}
	a, err := os.ReadFile(p.a)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(p.b)
	switch {
	case err != nil:
		return err
	case string(a) != string(b) || strings.Contains(string(a), "garbage"):
		return fmt.Errorf("%q and %q are no pair", a, b)
	}
	p.used = string(a)
	return nil
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *pair) write(t *testing.T, text string) {
	t.Helper()
	write(t, p.a, text)
	write(t, p.b, text)
}

// expect checks the files, and compares the text in use, the number of events since the last call, and
// whether the last one is an error.
func (p *pair) expect(t *testing.T, what, used string, events int, refused bool) {
	t.Helper()
	p.Check(t.Context())
	if p.used != used {
		t.Errorf("%s: %q is in use, not %q", what, p.used, used)
	}
	if len(p.events) != events || events > 0 && (p.events[events-1] != nil) != refused {
		t.Errorf("%s: events %v, want %d", what, p.events, events)
	}
	p.events = nil
	if stats := p.Stats(); (stats.Err == nil) != (used == p.text()) || time.Since(stats.Checked) > time.Minute {
		t.Errorf("%s: %+v", what, stats)
	}
}

// text returns the files' text if they are a pair.
func (p *pair) text() string {
	a, _ := os.ReadFile(p.a)
	b, _ := os.ReadFile(p.b)
	if string(a) != string(b) {
		return ""
	}
	return string(a)
}

// age sets the times of modification of a file back.
func age(t *testing.T, names ...string) {
	t.Helper()
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, name := range names {
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := errors.Join(os.Symlink(to, name+".next"), os.Rename(name+".next", name)); err != nil {
		t.Fatal(err)
	}
}

// TestReplaced replaces a pair as deployment tools do. Nothing is reported but that the new pair is used.
func TestReplaced(t *testing.T) {
	t.Run("Kubernetes", func(t *testing.T) { // names that lead to ..data/name, and ..data to a new folder
		p := &pair{dir: t.TempDir()}
		p.a, p.b = filepath.Join(p.dir, "a"), filepath.Join(p.dir, "b")
		data := filepath.Join(p.dir, "..data")
		project := func(folder, text string) {
			t.Helper()
			path := filepath.Join(p.dir, folder)
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(path, "a"), text)
			write(t, filepath.Join(path, "b"), text)
			age(t, filepath.Join(path, "a"), filepath.Join(path, "b"))
			symlink(t, folder, data)
		}
		project("..2026_1", "one")
		symlink(t, "..data/a", p.a)
		symlink(t, "..data/b", p.b)
		p.watch(t)
		for i := range 3 {
			text := fmt.Sprintf("tw%d", i) // of the same length, and the same time
			project("..2027_"+text, text)
			p.expect(t, "projected", text, 1, false)
		}
	})
	t.Run("certbot", func(t *testing.T) { // each name leads to a numbered file
		p := &pair{dir: t.TempDir()}
		p.a, p.b = filepath.Join(p.dir, "a"), filepath.Join(p.dir, "b")
		for i, text := range []string{"one", "two"} {
			for _, name := range []string{"a", "b"} {
				write(t, filepath.Join(p.dir, fmt.Sprint(name, i)), text)
			}
		}
		symlink(t, "a0", p.a)
		symlink(t, "b0", p.b)
		p.watch(t)
		symlink(t, "a1", p.a)
		p.expect(t, "one link is new", "one", 0, false)
		symlink(t, "b1", p.b)
		p.expect(t, "both are new", "two", 1, false)
	})
	t.Run("rename over", func(t *testing.T) {
		p := newPair(t)
		for i, name := range []string{p.a, p.b} {
			write(t, name+".next", "two")
			if err := os.Rename(name+".next", name); err != nil {
				t.Fatal(err)
			}
			p.expect(t, "renamed", []string{"one", "two"}[i], i, false)
		}
	})
	t.Run("truncate and write", func(t *testing.T) {
		p := newPair(t)
		for i, name := range []string{p.a, p.b} {
			write(t, name, "")
			p.expect(t, "truncated", "one", 0, false)
			write(t, name, "t")
			p.expect(t, "half written", "one", 0, false)
			write(t, name, "two")
			p.expect(t, "written", []string{"one", "two"}[i], i, false)
		}
	})
	t.Run("removed and made again", func(t *testing.T) {
		p := newPair(t)
		if err := errors.Join(os.Remove(p.a), os.Remove(p.b)); err != nil {
			t.Fatal(err)
		}
		p.expect(t, "removed", "one", 0, false)
		p.write(t, "two")
		p.expect(t, "made", "two", 1, false)
	})
	if runtime.GOOS != "linux" { // where statusTime is not known
		return
	}
	t.Run("same size and time", func(t *testing.T) {
		p := newPair(t)
		age(t, p.a, p.b)
		p.expect(t, "touched", "one", 0, false)
		p.write(t, "two")
		age(t, p.a, p.b)
		p.expect(t, "written", "two", 1, false)
	})
}

// TestTouched: other metadata with the same contents are no change.
func TestTouched(t *testing.T) {
	p := newPair(t)
	age(t, p.a)
	if err := os.Chmod(p.b, 0o400); err != nil {
		t.Fatal(err)
	}
	p.expect(t, "touched", "one", 0, false)
	if stats := p.Stats(); p.loads != 1 || stats.Used != 1 || stats.Refused != 0 || stats.Since.IsZero() {
		t.Errorf("loaded %d times: %+v", p.loads, stats)
	}
}

// TestRefused: contents that can't be used are reported once, and the text in use stays.
func TestRefused(t *testing.T) {
	p := newPair(t)
	p.write(t, "garbage")
	p.expect(t, "garbage, just written", "one", 0, false)
	p.expect(t, "garbage", "one", 1, true)
	loads := p.loads
	p.expect(t, "still garbage", "one", 0, false)
	if p.loads != loads {
		t.Error("the same garbage was loaded again")
	}
	for range 2 {
		if err := p.Reload(); err == nil {
			t.Error("Reload: no error")
		}
	}
	p.write(t, "more garbage")
	p.expect(t, "other garbage, just written", "one", 0, false)
	p.expect(t, "other garbage", "one", 1, true)
	p.write(t, "one")
	p.expect(t, "as before", "one", 0, false)
	write(t, p.a, "two")
	p.expect(t, "half a pair", "one", 0, false)
	p.expect(t, "still half a pair", "one", 1, true)
	write(t, p.b, "two")
	p.expect(t, "a pair", "two", 1, false)
	if stats := p.Stats(); stats.Used != 2 || stats.Refused != 3 {
		t.Errorf("%+v", stats)
	}
}

// TestMayPass: if the function's error may pass without a change of the files, it's called until it has,
// and the error is reported once.
func TestMayPass(t *testing.T) {
	for name, err := range map[string]error{
		"unreadable":     &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission},
		"no descriptors": fmt.Errorf("load: %w", syscall.EMFILE),
		"no memory":      &ossl.ConfigError{Field: "Certificates", Err: syscall.ENOMEM},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.err = err
			p.write(t, "two")
			p.Check(t.Context())
			p.Check(t.Context())
			if len(p.events) != 1 || !errors.Is(p.events[0], err) || !errors.Is(p.Stats().Err, err) {
				t.Errorf("events %v, %+v", p.events, p.Stats())
			}
			p.events = nil
			for range 3 {
				p.Check(t.Context())
			}
			if len(p.events) != 0 || p.loads != 6 {
				t.Errorf("loaded %d times, events %v", p.loads, p.events)
			}
			p.err = nil
			p.expect(t, "passed", "two", 1, false)
		})
	}
}

// TestFolder: files come, change and go in a folder. Names with a dot and folders don't count.
func TestFolder(t *testing.T) {
	folder := t.TempDir()
	loads := 0
	w := ossl.NewWatch(func() error { loads++; return nil }, folder)
	step := func(what string, change func() error, loaded bool) {
		t.Helper()
		before := loads
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if w.Check(t.Context()); (loads > before) != loaded {
			t.Errorf("%s: loaded is %v", what, loads > before)
		}
	}
	name := func(s string) string { return filepath.Join(folder, s) }
	text := func(s, text string) func() error {
		return func() error { return os.WriteFile(name(s), []byte(text), 0o600) }
	}
	step("at first", func() error { return nil }, true)
	step("a file", text("x", "1"), true)
	step("nothing", func() error { return nil }, false)
	step("changed", text("x", "2"), true)
	step("a hidden file", text(".x.swp", "3"), false)
	step("a folder", func() error { return os.Mkdir(name("sub"), 0o700) }, false)
	step("a file in it", text("sub/x", "1"), false)
	step("renamed", func() error { return os.Rename(name("x"), name("y")) }, true)
	step("removed", func() error { return os.Remove(name("y")) }, true)
}
