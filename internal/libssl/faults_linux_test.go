//go:build cgo || ossl_nocgo

package libssl

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A process loads one OpenSSL, once, so each case here runs in a process of its own: it loads the
// libraries in faultEnv, one after the other, and prints the results.
const faultEnv = "OSSL_TEST_FAULT"

// An attempt is the result of one call of Load.
type attempt struct {
	Library *Library
	Error   string
	Mapped  []string // the libssl and libcrypto in the process after it
}

func TestFaultChild(t *testing.T) {
	specs := os.Getenv(faultEnv)
	if specs == "" {
		return // it is not a test by itself
	}
	var attempts []attempt
	for spec := range strings.SplitSeq(specs, "\n") {
		lib, err := Load(strings.TrimSpace(spec))
		a := attempt{Library: lib}
		if err != nil {
			var failure *LoadError
			if !errors.Is(err, ErrUnavailable) || !errors.As(err, &failure) || len(failure.Tried) == 0 {
				t.Errorf("%q: %v is no LoadError", spec, err)
			}
			a.Error = err.Error()
		} else if ctx, err := NewContext(&ContextConfig{SecurityLevel: -1}); err != nil || ctx == nil {
			t.Errorf("%q: %v", spec, err)
		}
		runtime.GC() // so that anything that would unload a library has run
		a.Mapped = mapped(t)
		attempts = append(attempts, a)
	}
	if err := json.NewEncoder(os.Stdout).Encode(attempts); err != nil {
		t.Fatal(err)
	}
}

func mapped(t *testing.T) []string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(maps)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "/"); ok && strings.Contains(filepath.Base(name), ".so") {
			names = append(names, "/"+name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// load starts a process that loads specs, and returns the results.
func load(t *testing.T, env []string, specs ...string) []attempt {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestFaultChild$")
	// A space distinguishes one empty spec from none. Without the option the race detector takes a
	// second to exit.
	cmd.Env = append(append(os.Environ(), faultEnv+"="+strings.Join(specs, "\n")+" ", "GORACE=atexit_sleep_ms=0"), env...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s%s", specs, err, &out, &stderr)
	}
	var attempts []attempt
	if err := json.NewDecoder(&out).Decode(&attempts); err != nil || len(attempts) != len(specs) {
		t.Fatalf("%q: %d attempts: %v\n%s", specs, len(attempts), err, &stderr)
	}
	return attempts
}

// refused checks that an attempt failed, for a reason that contains all these words.
func refused(t *testing.T, a attempt, words ...string) {
	t.Helper()
	if a.Library != nil {
		t.Fatalf("%s with %s was taken", a.Library.Path, a.Library.CryptoPath)
	}
	for _, word := range words {
		if !strings.Contains(a.Error, word) {
			t.Errorf("%q lacks %q", a.Error, word)
		}
	}
}

func host(t *testing.T) *Library {
	t.Helper()
	lib, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// libraryNames returns the file names of the host's pair, such as libssl.so.3 and libcrypto.so.3:
// the newest ones that the file names allow.
func libraryNames(lib *Library) (ssl, crypto string) {
	for _, major := range majors {
		name := "libssl.so." + major
		if strings.HasPrefix(filepath.Base(lib.Path), name) {
			return name, "libcrypto.so." + major
		}
	}
	return filepath.Base(lib.Path), filepath.Base(lib.CryptoPath)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// folder makes a folder of files.
func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// loadedPart returns the size of the part of a library that is loaded; the rest of the file follows
// it.
func loadedPart(t *testing.T, library []byte) (end uint64) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(library))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			end = max(end, p.Off+p.Filesz)
		}
	}
	return end
}

// TestBrokenFiles loads files that are not libraries, or not for this processor.
func TestBrokenFiles(t *testing.T) {
	lib := host(t)
	ssl, _ := libraryNames(lib)
	good := read(t, lib.Path)
	edited := func(at int, b byte) []byte {
		bad := bytes.Clone(good)
		bad[at] = b
		return bad
	}
	// The offsets are the ELF header's: its class, its machine, and the program headers' offset.
	for name, data := range map[string][]byte{
		"empty":           {},
		"text":            []byte("no library\n"),
		"header only":     good[:64],
		"cut in half":     good[:len(good)/2],
		"last page gone":  good[:loadedPart(t, good)-4096],
		"32-bit":          edited(4, 1),
		"other processor": edited(18, good[18]^0x55),
		"headers away":    edited(36, 0x7f),
		"segments away":   edited(64+56+32+4, 0x7f), // the second program header's size in the file
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string][]byte{ssl: data})
			path := filepath.Join(dir, ssl)
			for _, a := range load(t, nil, path, dir) {
				refused(t, a, path)
			}
		})
	}
	t.Run("folder of that name", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), ssl)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		refused(t, load(t, nil, path)[0], path)
	})
	t.Run("broken libcrypto", func(t *testing.T) {
		_, crypto := libraryNames(lib)
		dir := folder(t, map[string][]byte{ssl: good, crypto: good[:64]})
		refused(t, load(t, nil, dir)[0], crypto)
	})
}

// TestSpaces loads from a folder with spaces and a comma in its name.
func TestSpaces(t *testing.T) {
	lib := host(t)
	ssl, crypto := libraryNames(lib)
	dir := filepath.Join(t.TempDir(), "my own, newer OpenSSL")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{ssl: lib.Path, crypto: lib.CryptoPath} {
		if err := os.WriteFile(filepath.Join(dir, name), read(t, from), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, spec := range []string{dir, filepath.Join(dir, ssl)} {
		var env []string
		if !hostSearch().glibc { // musl's searches for libssl's libcrypto
			refused(t, load(t, nil, spec)[0], "not a matching pair", "LD_LIBRARY_PATH="+dir)
			env = []string{"LD_LIBRARY_PATH=" + dir}
		}
		a := load(t, env, spec)[0]
		if a.Library == nil {
			t.Fatal(a.Error)
		}
		if filepath.Dir(a.Library.Path) != dir || filepath.Dir(a.Library.CryptoPath) != dir {
			t.Errorf("%s with %s; want those in %s", a.Library.Path, a.Library.CryptoPath, dir)
		}
	}
}

// TestTwoOpenSSLs has other parts of the program load an OpenSSL, or parts of one, before ours.
func TestTwoOpenSSLs(t *testing.T) {
	lib := host(t)
	ssl, crypto := libraryNames(lib)
	dir := folder(t, map[string][]byte{ssl: read(t, lib.Path), crypto: read(t, lib.CryptoPath)})
	own, ownCrypto := filepath.Join(dir, ssl), filepath.Join(dir, crypto)
	preload := func(names ...string) []string {
		// AddressSanitizer's own library must be the first.
		asan := "ASAN_OPTIONS=" + os.Getenv("ASAN_OPTIONS") + ":verify_asan_link_order=0"
		env := []string{"LD_PRELOAD=" + strings.Join(names, " "), asan}
		if !hostSearch().glibc && len(names) > 1 { // musl's searches for libssl's libcrypto
			env = append(env, "LD_LIBRARY_PATH="+filepath.Dir(names[1]))
		}
		return env
	}

	t.Run("another libcrypto", func(t *testing.T) {
		a := load(t, preload(ownCrypto), "")[0]
		refused(t, a, "not a matching pair", ownCrypto)
		refused(t, load(t, preload(ownCrypto), lib.Path)[0], "not a matching pair", ownCrypto)
	})
	t.Run("another pair", func(t *testing.T) {
		// libssl is found by its name: the pair in the process is used, and it matches.
		a := load(t, preload(own, ownCrypto), "")[0]
		if a.Library == nil || a.Library.Path != own || a.Library.CryptoPath != ownCrypto {
			t.Errorf("got %+v, %s; want the pair of %s", a.Library, a.Error, dir)
		}
		refused(t, load(t, preload(own, ownCrypto), lib.Path)[0], "not a matching pair", ownCrypto)
	})
	t.Run("the same pair", func(t *testing.T) {
		a := load(t, preload(lib.Path, lib.CryptoPath), "")[0]
		if a.Library == nil || a.Library.Path != lib.Path || a.Library.CryptoPath != lib.CryptoPath {
			t.Errorf("got %+v, %s; want the host's", a.Library, a.Error)
		}
	})
	t.Run("left by an attempt", func(t *testing.T) {
		// The folder's libcrypto was loaded before its libssl turned out to be broken, and stays.
		dir := folder(t, map[string][]byte{ssl: nil, crypto: read(t, lib.CryptoPath)})
		attempts := load(t, nil, dir, "")
		refused(t, attempts[0], ssl)
		if hostSearch().glibc {
			refused(t, attempts[1], "not a matching pair", filepath.Join(dir, crypto))
		} else if a := attempts[1]; a.Library == nil || a.Library.CryptoPath != lib.CryptoPath {
			// musl's loader doesn't use a library that was loaded by path for a dependency.
			t.Errorf("got %+v, %s; want the host's", a.Library, a.Error)
		}
	})
	t.Run("symbols of the program", func(t *testing.T) {
		// Like a program into which another package has linked an OpenSSL statically: the Go linker
		// exports all of its symbols.
		fake := filepath.Join(t.TempDir(), "program.so")
		compile(t, fake, "void *OPENSSL_sk_new_null(void) { return 0; }\n")
		refused(t, load(t, preload(fake), "")[0], "not a matching pair", "OPENSSL_sk_new_null", fake)
	})
	t.Run("symbols that nobody calls", func(t *testing.T) {
		fake := filepath.Join(t.TempDir(), "program.so")
		compile(t, fake, "void *OPENSSL_no_such_function(void) { return 0; }\n")
		if a := load(t, preload(fake), "")[0]; a.Library == nil {
			t.Error(a.Error)
		}
	})
}

// TestVersionsMixed pairs the library under test with the host's, if they are two versions with the
// same name.
func TestVersionsMixed(t *testing.T) {
	lib := host(t)
	ssl, crypto := libraryNames(lib)
	other := ""
	for _, pattern := range []string{"/usr/lib/*-linux-gnu*/" + ssl, "/usr/lib64/" + ssl, "/usr/lib/" + ssl} {
		for _, found := range glob(t, pattern) {
			path, err := filepath.EvalSymlinks(found)
			if err == nil && path != lib.Path && exists(filepath.Join(filepath.Dir(path), crypto)) {
				other = path
			}
		}
	}
	if other == "" {
		t.Skipf("needs OpenSSL 3.0 and 3.5 side by side, as ci/matrix has them; this is %s alone", lib.Version())
	}
	otherCrypto := filepath.Join(filepath.Dir(other), crypto)
	if text := releaseText.FindSubmatch(read(t, otherCrypto)); text == nil {
		t.Fatalf("%s doesn't say what it is", otherCrypto)
	} else if strings.HasPrefix(lib.Version(), string(text[1])) { // patch releases are compatible
		t.Skipf("needs OpenSSL 3.0 and 3.5 side by side, as ci/matrix has them; both are %s", text[1])
	}
	for name, files := range map[string]map[string][]byte{
		"older libssl": {ssl: read(t, other), crypto: read(t, lib.CryptoPath)},
		"newer libssl": {ssl: read(t, lib.Path), crypto: read(t, otherCrypto)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, files)
			a := load(t, nil, dir)[0]
			refused(t, a, filepath.Join(dir, ssl))
			t.Log(a.Error)
		})
	}
}

// releaseText matches the result of OpenSSL_version(3); the group is the release without its patch.
var releaseText = regexp.MustCompile(`OpenSSL (\d+\.\d+\.)\d+[a-z]? +\d+ [A-Z][a-z]{2} 20\d\d`)

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var apiEntry = regexp.MustCompile(`X\((SSL|CRYPTO), (OSSL_V\w+), (\w+), [^,()]+, (\w+), `)

// pretend compiles a libssl.so.3 with every symbol of api.h that a version must have, changed by
// edit. It loads, but only the functions that return its version may be called.
func pretend(t *testing.T, version string, number uint64, edit func(symbols map[string]bool)) string {
	t.Helper()
	since := map[string]uint64{"OSSL_V1_1_1": 0x10101000, "OSSL_V3_0": 0x30000000}
	for minor := range uint64(10) {
		since[fmt.Sprintf("OSSL_V3_%d", minor)] = 0x30000000 | minor<<20
		since[fmt.Sprintf("OSSL_V4_%d", minor)] = 0x40000000 | minor<<20
	}
	api := strings.ReplaceAll(string(read(t, "api.h")), "\\\n\t\t", "")
	symbols := map[string]bool{}
	entries := apiEntry.FindAllStringSubmatch(api, -1)
	if len(entries) < 150 {
		t.Fatalf("%d symbols found: has the form of api.h changed?", len(entries))
	}
	for _, m := range entries {
		first, ok := since[m[2]]
		if !ok {
			t.Fatalf("api.h: %s is not known here", m[2])
		}
		if first <= number && m[3] != "OPTIONAL" && (m[3] != "ONLY_1_1_1" || number < 0x30000000) {
			symbols[m[4]] = true
		}
	}
	edit(symbols)
	source := fmt.Sprintf("unsigned long OpenSSL_version_num(void) { return %#x; }\n", number) +
		fmt.Sprintf("const char *OpenSSL_version(int type) { return \"OpenSSL %s\"; }\n", version)
	delete(symbols, "OpenSSL_version_num")
	delete(symbols, "OpenSSL_version")
	for name := range symbols {
		source += "void " + name + "(void) { __builtin_trap(); }\n"
	}
	lib := filepath.Join(t.TempDir(), "libssl.so.3")
	compile(t, lib, source)
	return lib
}

func compile(t *testing.T, library, source string) {
	t.Helper()
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	cc, err := exec.LookPath(compiler)
	if err != nil {
		t.Skip("cc, or what CC names, is not installed")
	}
	cmd := exec.Command(cc, "-shared", "-fPIC", "-w", "-fno-builtin", "-x", "c", "-", "-o", library)
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestMissingSymbols loads libraries that lack required symbols: every missing symbol is named.
func TestMissingSymbols(t *testing.T) {
	var all []string
	none := pretend(t, "3.0.0", 0x30000000, func(symbols map[string]bool) {
		for name := range symbols {
			if name != "OpenSSL_version_num" && name != "OpenSSL_version" {
				all = append(all, name)
			}
		}
		clear(symbols)
	})
	a := load(t, nil, none)[0]
	refused(t, a, none, "missing symbols: ")
	_, list, _ := strings.Cut(a.Error, "missing symbols: ")
	got := strings.Fields(list)
	slices.Sort(got)
	slices.Sort(all)
	if !slices.Equal(got, all) {
		t.Errorf("%d symbols are named, %d are missing:\n%s", len(got), len(all), list)
	}
	// A refused library stays mapped, like any other.
	if !slices.Contains(a.Mapped, none) {
		t.Errorf("%s was unloaded: %q", none, a.Mapped)
	}

	one := pretend(t, "3.5.0", 0x30500000, func(symbols map[string]bool) { delete(symbols, "SSL_read_ex") })
	refused(t, load(t, nil, one)[0], "missing symbols: SSL_read_ex")

	// 1.1.1 built without engines can't sign with a crypto.Signer.
	engines := pretend(t, "1.1.1w", 0x1010117f, func(symbols map[string]bool) {
		for name := range symbols {
			if strings.HasPrefix(name, "ENGINE_") {
				delete(symbols, name)
			}
		}
	})
	refused(t, load(t, nil, engines)[0], "missing symbols: ENGINE_new")

	old := pretend(t, "1.1.0l", 0x101000cf, func(symbols map[string]bool) {
		symbols["SSL_new"] = true
	})
	refused(t, load(t, nil, old)[0], "older than 1.1.1")
}

// TestOlderAndNewerPairs checks how libssl's version, which libssl itself doesn't report, is
// distinguished from libcrypto's.
func TestOlderAndNewerPairs(t *testing.T) {
	older := pretend(t, "3.5.0", 0x30500000, func(symbols map[string]bool) {
		delete(symbols, "SSL_CTX_set_domain_flags")
	})
	refused(t, load(t, nil, older)[0], "SSL_CTX_set_domain_flags")
	newer := pretend(t, "3.0.9", 0x30000090, func(symbols map[string]bool) {
		symbols["SSL_get0_group_name"] = true
		symbols["SSL_SESSION_get_time_ex"] = true
	})
	refused(t, load(t, nil, newer)[0], "not a matching pair", "3.0.9", "SSL_SESSION_get_time_ex")
}

// TestNeverUnloaded: threads that have used OpenSSL run its destructors when they exit, and Go's
// threads may exit at any time.
func TestNeverUnloaded(t *testing.T) {
	lib := host(t)
	for _, a := range load(t, nil, "", "/nonexistent", "") {
		for _, path := range []string{lib.Path, lib.CryptoPath} {
			// Under an emulator the path begins with the folder that replaces the system's root.
			if !slices.ContainsFunc(a.Mapped, func(m string) bool { return strings.HasSuffix(m, path) }) {
				t.Errorf("%s is not mapped: %q", path, a.Mapped)
			}
		}
	}
	unloads := regexp.MustCompile(`\b(dlclose|FreeLibrary)\w*\(`)
	for _, pattern := range []string{"*.c", "*.h", "*.go"} {
		for _, name := range glob(t, pattern) {
			if found := unloads.Find(read(t, name)); found != nil {
				t.Errorf("%s calls %s", name, found)
			}
		}
	}
}

// TestEnvironmentOfLesserUser runs a program with the set-user-ID bit as another user, who must not
// be able to choose a library for it.
func TestEnvironmentOfLesserUser(t *testing.T) {
	host(t) // without the environment's choice another library would be loaded, also for later tests
	before := privileged
	t.Cleanup(func() { privileged = before })
	if privileged() {
		t.Error("this process has more rights than who started it?")
	}
	t.Run("refused", func(t *testing.T) {
		privileged = func() bool { return true }
		t.Setenv(EnvLibrary, "/nonexistent")
		if lib, err := Load(""); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), EnvLibrary) {
			t.Errorf("got %+v, %v", lib, err)
		}
		t.Setenv(EnvLibrary, "")
		if _, err := Load(""); err != nil && os.Getenv(EnvLibrary) == "" && strings.Contains(err.Error(), EnvLibrary) {
			t.Error(err)
		}
	})
	if os.Getuid() != 0 || isScript(t, os.Args[0]) {
		return // another user's file can't be made here, or scripts have no such bit
	}
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, read(t, os.Args[0]), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(program, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Flags&syscall.MS_NOSUID != 0 {
		return // the bit has no effect there
	}
	const nobody = 65534
	cmd := exec.Command(program, "-test.run=^TestFaultChild$")
	cmd.Env = []string{faultEnv + "= ", EnvLibrary + "=/nonexistent", "TMPDIR=" + dir, "GORACE=atexit_sleep_ms=0"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.Output()
	if errors.Is(err, syscall.EACCES) {
		return // the other user can't reach the file
	}
	if !strings.Contains(string(out), "more rights than the user") {
		t.Errorf("%v: %s", err, out)
	}
}

func isScript(t *testing.T, name string) bool {
	return bytes.HasPrefix(read(t, name), []byte("#!"))
}
