package gofarm

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// repository is the tree with ossl's sources.
var repository = func() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..")
}()

func toolchain(t *testing.T) Toolchain {
	t.Helper()
	tc, err := Find(t.Context(), []string{"build"})
	if err != nil {
		t.Fatal(err)
	}
	return tc
}

// plan returns a plan whose farm is in a cache of its own.
func plan(t *testing.T, edit func(*Toolchain, *Options)) (*Plan, error) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	tc := toolchain(t)
	o := &Options{Mode: "prefer", Source: Source{Dir: repository, Version: "v0.0.0-test"}, UnknownGo: true}
	if edit != nil {
		edit(&tc, o)
	}
	return NewPlan(t.Context(), tc, o)
}

func TestMake(t *testing.T) {
	p, err := plan(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			if err := p.Make(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if entries, err := os.ReadDir(filepath.Dir(p.Root)); err != nil || len(entries) != 1 {
		t.Errorf("the cache has %v, %v", entries, err)
	}
	for _, name := range []string{"src/fmt/print.go", "src/crypto/tls/generate_cert.go",
		"src/crypto/tls/internal/fips140tls/fipstls.go", "src/crypto/tls/internal/core/conn.go",
		"src/crypto/tls/internal/ossl/conn.go", "bin/go", "pkg/include/textflag.h"} {
		if _, err := os.Stat(filepath.Join(p.Root, name)); err != nil {
			t.Error(err)
		}
	}
	// A farm is the way to its GOROOT.
	tc := p.toolchain
	inFarm := tc
	inFarm.Root, inFarm.ToolDir = p.Root, strings.Replace(tc.ToolDir, tc.Root, p.Root, 1)
	if got, err := inFarm.real(); got != tc || err != nil {
		t.Errorf("the toolchain of the farm is %v, %v, want %v", got, err, tc)
	}
	if n, err := Clean(); n != 1 || err != nil {
		t.Errorf("Clean removes %d, %v", n, err)
	}
	if n, err := Clean(); n != 0 || err != nil {
		t.Errorf("Clean removes %d, %v", n, err)
	}
}

// TestFolders: the names of folders may have any characters that the go command allows.
func TestFolders(t *testing.T) {
	const odd = `a[b]*? $HOME "it's" `
	root := filepath.Join(t.TempDir(), odd)
	p, err := plan(t, func(tc *Toolchain, _ *Options) {
		if err := os.Symlink(tc.Root, root); err != nil {
			t.Fatal(err)
		}
		setRoot(tc, root)
		t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), odd))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(p.Root, p.tools, "link"), "-V=full").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "link version ") {
		t.Errorf("the linker: %v\n%s", err, out)
	}
	farm := Toolchain{Root: p.Root, ToolDir: filepath.Join(p.Root, p.tools), Version: p.toolchain.Version}
	if got, err := farm.real(); got != p.toolchain || err != nil {
		t.Errorf("the toolchain of the farm is %v, %v, want %v", got, err, p.toolchain)
	}
}

// TestFarmOfOthers: a farm that another user may have made isn't used, and Clean removes nothing but farms.
func TestFarmOfOthers(t *testing.T) {
	p, err := plan(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	moved, kept := p.Root+"-moved", filepath.Join(filepath.Dir(p.Root), "mine")
	if err := os.Mkdir(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"a link": func() error { return errors.Join(os.Rename(p.Root, moved), os.Symlink(moved, p.Root)) },
		"a folder that others can write": func() error {
			return errors.Join(os.RemoveAll(p.Root), os.RemoveAll(moved), p.Make(t.Context()), os.Chmod(p.Root, 0o777))
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := p.Make(t.Context()); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s is used: %v", name, err)
		}
	}
	if _, err := Clean(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(p.Root)); err != nil || len(entries) != 1 || entries[0].Name() != "mine" {
		t.Errorf("Clean leaves %v, %v", entries, err)
	}
}

// TestMakeFails: nothing half made remains.
func TestMakeFails(t *testing.T) {
	p, err := plan(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Make(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(p.Root)); err != nil || len(entries) != 0 {
		t.Errorf("the cache has %v, %v", entries, err)
	}
	if err := os.Chmod(filepath.Dir(p.Root), 0o777); err != nil { // anybody could have made a farm
		t.Fatal(err)
	}
	const want = "its mode is 0777: use chmod go-w. To use another cache"
	if err := p.Make(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a folder of everybody: %v", err)
	}
	if err := os.RemoveAll(filepath.Dir(p.Root)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Dir(p.Root), nil, 0o644); err != nil { // no folder can be made
		t.Fatal(err)
	}
	if err := p.Make(t.Context()); err == nil || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("without a folder: %v", err)
	}
}

func TestFindFails(t *testing.T) {
	p, err := plan(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, command := range []string{"build", "install example.org/x@latest"} {
		if _, err := Find(ctx, strings.Fields(command)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, canceled: %v", command, err)
		}
	}
	t.Setenv("GOROOT", p.Root) // which was never made
	if _, err := Find(t.Context(), []string{"build"}); err == nil || !strings.Contains(err.Error(), "unset GOROOT") {
		t.Errorf("the GOROOT was removed: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Toolchain, *Options)
		want string
	}{
		"no sources": {func(tc *Toolchain, _ *Options) { setRoot(tc, t.TempDir()) }, "crypto/tls has no sources"},
		"another Go": {func(tc *Toolchain, o *Options) {
			o.UnknownGo = false
			setRoot(tc, changedGo(t, tc.Root))
		}, "was not tested with it"},
		"not ossl": {func(_ *Toolchain, o *Options) { o.Source.Dir = t.TempDir() }, "has no ossl that can be built into crypto/tls"},
	} {
		if _, err := plan(t, c.edit); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// setRoot gives a toolchain another GOROOT.
func setRoot(tc *Toolchain, root string) {
	tc.ToolDir = strings.Replace(tc.ToolDir, tc.Root, root, 1)
	tc.Root = root
}

// changedGo returns a GOROOT whose crypto/tls has one comment more.
func changedGo(t *testing.T, goroot string) string {
	t.Helper()
	files, err := readGo(goroot)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for name, data := range files {
		if err := write(filepath.Join(root, "src/crypto/tls", name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	patched := append(files["tls.go"], "// patched\n"...)
	if err := os.WriteFile(filepath.Join(root, "src/crypto/tls/tls.go"), patched, 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestUnknownGo: a crypto/tls that the patches don't fit is refused, even with --unknown-go.
func TestUnknownGo(t *testing.T) {
	files, err := readGo(toolchain(t).Root)
	if err != nil {
		t.Fatal(err)
	}
	const declaration = "type alert uint8\n"
	for name, c := range map[string]struct{ file, old, new, want string }{
		"an anchor is gone":  {"conn.go", "Read(b []byte) (int, error) {", "Read(p []byte) (int, error) {", "0 times"},
		"a method is new":    {"alert.go", declaration, declaration + "func (c *Conn) Peek() {}\n", "the methods of Conn are"},
		"a variable":         {"alert.go", declaration, declaration + "var Exported int\n", "the variable Exported is exported"},
		"a generic function": {"alert.go", declaration, declaration + "func F[T any](T) {}\n", "the function F has type parameters"},
	} {
		changed := maps.Clone(files)
		changed[c.file] = bytes.Replace(files[c.file], []byte(c.old), []byte(c.new), 1)
		if bytes.Equal(changed[c.file], files[c.file]) {
			t.Fatalf("%s: nothing is changed", name)
		}
		if _, err := tlsFiles(changed); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestName: the name of a farm depends on all of its sources, and the contents of programs don't depend on
// folders.
func TestName(t *testing.T) {
	build := func(edit func(*Toolchain, *Options)) (name, marker string) {
		p, err := plan(t, edit)
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Base(p.Root), string(p.marker.file())
	}
	name, marker := build(nil)
	if again, same := build(nil); again != name || same != marker {
		t.Error("the same farm has two names")
	}
	if other, differs := build(func(_ *Toolchain, o *Options) { o.Mode = "require" }); other == name || differs == marker {
		t.Error("another mode: the same name, or the same marker")
	}
	if other, differs := build(func(_ *Toolchain, o *Options) { o.Source.Version = "v1" }); other == name || differs == marker {
		t.Error("another version: the same name, or the same marker")
	}
	other, differs := build(func(tc *Toolchain, _ *Options) { setRoot(tc, changedGo(t, tc.Root)) })
	if other == name || differs == marker {
		t.Error("another Go: the same name, or the same marker")
	}
}

// TestRewritten: only imports, and a comparison with a PkgPath, get another path, and no text that programs show.
func TestRewritten(t *testing.T) {
	files, err := readOssl(repository)
	if err != nil {
		t.Fatal(err)
	}
	right := regexp.MustCompile(`^(import|\s*)\s*([a-z]+ )?"[a-z/]+"$|PkgPath`)
	for name, data := range osslFiles(files, marker{}) {
		for line := range strings.Lines(string(data)) {
			code, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "//")
			if strings.Contains(code, `"`+corePath) && !right.MatchString(code) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// TestGlobalNames: the names that get a prefix are those that the compiler exports.
func TestGlobalNames(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the C code: only without -short")
	}
	if _, err := exec.LookPath("nm"); err != nil {
		t.Skip("there is no nm")
	}
	files, err := readOssl(repository)
	if err != nil {
		t.Fatal(err)
	}
	c := map[string][]byte{}
	for name, data := range files {
		if strings.HasPrefix(name, "internal/libssl/") {
			c[name] = data
		}
	}
	names := globalNames(c)
	dir := t.TempDir()
	var sources []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if isC(name) {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), renameC(name, c[name], names), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if base := filepath.Base(name); strings.HasSuffix(name, ".c") && base != "dl_windows.c" {
			sources = append(sources, base)
		}
	}
	compile := append([]string{"gcc", "-O2", "-c", "-DOSSL_FAULTS"}, sources...)
	for _, args := range [][]string{compile, {"sh", "-c", "nm -g --defined-only *.o"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		if args[0] != "sh" {
			continue
		}
		n := 0
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) == 3 {
				if n++; !strings.HasPrefix(f[2], cPrefix) {
					t.Errorf("%s has no prefix", f[2])
				}
			}
		}
		if n < 100 {
			t.Errorf("nm found %d names", n)
		}
	}
}

func TestArguments(t *testing.T) {
	for line, want := range map[string]struct {
		dir     string
		version bool
	}{
		"build ./...":                   {"", false},
		"build -C sub .":                {"sub", false},
		"-C sub build":                  {"sub", false},
		"test -C=sub":                   {"sub", false},
		"install x.org/y@latest":        {"", true},
		"install -v x.org/y@v1.2.3":     {"", true},
		"run x.org/y@latest -flag":      {"", true},
		"run . user@host":               {"", true},
		"get x.org/y@latest":            {"", false},
		"install -ldflags=-X=a@b ./...": {"", false},
	} {
		args := strings.Fields(line)
		if got := changesTo(args); got != want.dir {
			t.Errorf("%s: the folder is %q", line, got)
		}
		if got := namesVersion(args); got != want.version {
			t.Errorf("%s: names a version: %v", line, got)
		}
	}
}
