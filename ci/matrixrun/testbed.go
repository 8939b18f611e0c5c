//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A testbed is a folder that stands for whichever OpenSSL is under test.
//
// A newer OpenSSL needs a newer C library, and that one needs its own program loader. The loader
// can be started by hand (as a version's run script does) and LD_LIBRARY_PATH can be set, but both
// break tests that start programs: with the first, /proc/self/exe is the loader and a test that
// starts itself again silently gets the host's OpenSSL; with the second, every program inherits
// libraries that its loader doesn't fit, and crashes. So the test binaries are linked to a loader
// and a library path inside this folder, which are symbolic links: to go from version to version
// the links change. Started again, a binary has the same OpenSSL; openssl, curl and the rest keep
// the host's, for which they were built. Versions that run at the same time have a testbed each
// (clone).
//
// The variables that children do inherit are in planned.environment.
//
// Programs for an emulated processor find their libraries in its system's root, and need none of
// this.
type testbed struct {
	dir      string
	sysroot  string // of the emulated processor, or ""
	cc       string // the C compiler, or "" for the usual one
	nocgo    bool   // programs are built without cgo
	binaries []binary
}

// librarySlots is how many library folders a version may have.
const librarySlots = 4

func (b *testbed) loader() string         { return filepath.Join(b.dir, "loader") }
func (b *testbed) command() string        { return filepath.Join(b.dir, "ossl") }
func (b *testbed) slot(number int) string { return filepath.Join(b.dir, fmt.Sprintf("lib%d", number)) }

// ldflags link to the testbed's loader and library folders. DT_RPATH, the older of the two tags,
// holds for the libraries that libssl itself needs too; DT_RUNPATH does not.
func (b *testbed) ldflags() string {
	if b.sysroot != "" {
		return ""
	}
	var slots []string
	for n := range librarySlots {
		slots = append(slots, b.slot(n))
	}
	if b.nocgo { // which writes DT_RUNPATH: testbed.ownLoader changes that
		return fmt.Sprintf("-I %s -r %s", b.loader(), strings.Join(slots, ":"))
	}
	return fmt.Sprintf("-extldflags '-Wl,--dynamic-linker=%s -Wl,--disable-new-dtags -Wl,-rpath,%s'",
		b.loader(), strings.Join(slots, ":"))
}

// clone makes another testbed, in a folder whose name must be as long: the programs hold the names
// of their testbed's links.
func (b *testbed) clone(dir string) (*testbed, error) {
	if len(dir) != len(b.dir) || b.sysroot != "" {
		return nil, fmt.Errorf("no clone of %s can be in %s", b.dir, dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	clone := &testbed{dir: dir}
	transfer := func(from, to string) error {
		program, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return os.WriteFile(to, bytes.ReplaceAll(program, []byte(b.dir+"/"), []byte(dir+"/")), 0o700)
	}
	if err := transfer(b.command(), clone.command()); err != nil {
		return nil, err
	}
	for _, bin := range b.binaries {
		file := filepath.Join(dir, filepath.Base(bin.file))
		if err := transfer(bin.file, file); err != nil {
			return nil, err
		}
		bin.file = file
		clone.binaries = append(clone.binaries, bin)
	}
	return clone, nil
}

// use points the links at a version.
func (b *testbed) use(v version) error {
	if v.emulated {
		return nil
	}
	loader, err := v.loader()
	if err != nil {
		return err
	}
	dirs := v.libraryDirs()
	if len(dirs) > librarySlots {
		return fmt.Errorf("%d library folders, at most %d expected", len(dirs), librarySlots)
	}
	links := map[string]string{b.loader(): loader}
	for n := range librarySlots {
		links[b.slot(n)] = ""
		if n < len(dirs) {
			links[b.slot(n)] = dirs[n]
		}
	}
	for link, target := range links {
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if target != "" {
			if err := os.Symlink(target, link); err != nil {
				return err
			}
		}
	}
	return nil
}

// glob returns the files below the version's tree that match any of the patterns.
func (v version) glob(patterns ...string) []string {
	var found []string
	for _, pattern := range patterns {
		names, _ := filepath.Glob(filepath.Join(v.tree, pattern)) // the patterns are constant and well formed
		found = append(found, names...)
	}
	return found
}

func (v version) libraryDirs() []string {
	if v.tree == "" {
		return nil
	}
	if v.libraries != "" {
		return []string{v.libraries}
	}
	return v.glob("lib/*-linux-gnu*", "usr/lib/*-linux-gnu*", "usr/lib/*-linux-musl*")
}

// loader finds the program loader: the tree's own, or the host's if the tree has no C library.
func (v version) loader() (string, error) {
	name := "ld-linux*.so.*"
	if v.musl {
		name = "ld-musl-*.so.*"
	}
	own := v.glob("lib*/"+name, "lib/*/"+name, "usr/lib*/"+name, "usr/lib/*/"+name)
	for _, name := range append(own, version{tree: "/"}.glob("lib*/"+name)...) {
		if info, err := os.Stat(name); err == nil && info.Mode()&0o111 != 0 {
			return name, nil
		}
	}
	return "", errors.New("no program loader found")
}

// environment is the environment for a test binary, which its children inherit.
func (p planned) environment() []string {
	v := p.version
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "OSSL_LIBRARY", "OSSL_RECORDS", "OSSL_FIPS", "OSSL_TEST_FIPS", "OSSL_TEST_SESSIONS", "OSSL_SLIM", "OSSL_TRIM",
			"OSSL_SHARDS",
			"LD_LIBRARY_PATH", "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES":
			continue // a person's own would decide for every row
		}
		env = append(env, entry)
	}
	env = append(env, p.mode.env...)
	if v.emulated {
		return append(env, "CC="+emulatedCC)
	}
	if v.musl {
		env = append(env, "CC="+muslCC)
	}
	if v.major != "" {
		env = append(env, "OSSL_LIBRARY="+v.major) // otherwise a newer library of the host would be preferred
	}
	// Modules of another version don't load. The host's openssl command sees these too, and fails
	// only if it must load one.
	for _, dir := range v.libraryDirs() {
		if modules := filepath.Join(dir, "ossl-modules"); isDir(modules) {
			env = append(env, "OPENSSL_MODULES="+modules)
		}
		if engines := filepath.Join(dir, "engines-1.1"); isDir(engines) {
			env = append(env, "OPENSSL_ENGINES="+engines)
			if v.major == "" {
				env = append(env, "OSSL_LIBRARY=1.1") // otherwise the host's newer library would be preferred
			}
		}
	}
	return env
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// run runs every test binary that a row wants.
func (b *testbed) run(ctx context.Context, p planned, args []string) (*row, error) {
	if err := b.use(p.version); err != nil {
		return nil, err
	}
	r := &row{name: p.name(), ran: map[string]bool{}}
	var err error
	if r.library, err = b.whichLibrary(ctx, p); err != nil {
		return nil, err
	}
	start := time.Now()
	for _, bin := range b.binaries {
		if !bin.runsIn(p, b.nocgo) {
			continue
		}
		if err := runBinary(ctx, r, p, bin, args); err != nil {
			return nil, err
		}
	}
	r.elapsed = time.Since(start)
	return r, nil
}

// runsIn reports whether a row has a binary's tests.
func (b binary) runsIn(p planned, nocgo bool) bool {
	name := strings.TrimPrefix(b.pkg, rootPackage)
	switch {
	case b.fips && p.mode.run != "FIPS", b.goOnly && (nocgo || !p.goOnly()):
		return false
	case b.adapter:
		return p.adapters() && (!nocgo || p.version.rowsLike() == "3.5")
	case nocgo && p.version.name != "system" && !slices.Contains(nearC, name):
		return false
	case (p.version.emulated || p.version.musl) && slices.Contains(hostsPackages, name):
		return false
	}
	return !p.mode.apiOnly || b.ofAPI(p.mode)
}

const rootPackage = "github.com/ossl-go/ossl"

// ofAPI reports whether a binary tests connections through the core's API, since the modes concern
// connections. Package policy/apply has such tests for FIPS mode only: tests of servers and clients
// with the policies that need it.
func (b binary) ofAPI(m mode) bool {
	if b.pkg == rootPackage+"/policy/apply" {
		return m.run == "FIPS"
	}
	return b.pkg == rootPackage || b.pkg == rootPackage+"/keys" || strings.HasPrefix(b.pkg, rootPackage+"/internal/tests/")
}

// whichLibrary is the last check that this machinery works: a row must not be the host's OpenSSL
// under another name.
func (b *testbed) whichLibrary(ctx context.Context, p planned) (text string, err error) {
	v := p.version
	command := exec.CommandContext(ctx, b.command(), "version", "--json")
	command.Env = p.environment()
	out, err := command.Output()
	if err != nil {
		return "", commandError("ossl version", err)
	}
	var found struct {
		Library struct {
			Version     string `json:"version"`
			VersionText string `json:"version_text"`
			Path        string `json:"path"`
			CryptoPath  string `json:"crypto_path"`
		} `json:"library"`
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return "", fmt.Errorf("ossl version: %w", err)
	}
	library := found.Library
	if number := cmp.Or(v.number, numbered.FindString(v.name)); number != "" && !isRelease(library.Version, number) {
		return "", fmt.Errorf("version %s was loaded instead, %s", library.Version, library.Path)
	}
	for _, path := range []string{library.Path, library.CryptoPath} {
		if v.emulated {
			// As the program sees it: the emulator looks in the tree first.
			if _, err := os.Stat(filepath.Join(v.tree, path)); err != nil {
				return "", err
			}
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", err
		}
		if !strings.HasPrefix(real, v.tree+"/") {
			return "", fmt.Errorf("%s was loaded, which is not below %s", real, v.tree)
		}
	}
	return library.VersionText, nil
}

// isRelease reports whether a version is number, or a patch release of it.
func isRelease(version, number string) bool {
	rest, ok := strings.CutPrefix(version, number)
	return ok && (rest == "" || rest[0] == '.')
}

// runBinary adds the results of one package's tests to the row. Failing tests are a result, not an
// error.
func runBinary(ctx context.Context, r *row, p planned, bin binary, args []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"tool", "test2json", "-t", "-p", bin.pkg, bin.file}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = bin.dir, p.environment(), os.Stderr
	// A group of its own, so that an interruption reaches the tests and their children, not the go
	// command alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	start, before := time.Now(), *r
	readErr := r.read(out, os.Stdout)
	waitErr := cmd.Wait()
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // its children's among it
	r.used += used
	if err := ctx.Err(); err != nil {
		return err
	}
	if waitErr != nil && r.failed == before.failed {
		r.failed++ // no test is to blame: TestMain, a crash between tests, an example
	}
	fmt.Printf("%-19s %-45s %5d passed %3d failed %4d skipped  %6.1fs, CPU %6.1fs\n", r.name, bin.pkg,
		r.passed-before.passed, r.failed-before.failed, len(r.skips)-len(before.skips),
		time.Since(start).Seconds(), used.Seconds())
	return readErr
}
