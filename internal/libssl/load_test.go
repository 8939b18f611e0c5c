package libssl

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCandidates(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"libssl.so.3", "libcrypto.so.3", "libssl.so.1.1", "libssl.3.dylib", "libcrypto.3.dylib"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	named := func(major, version string) candidate {
		return candidate{path: "libssl.so." + major, cryptoName: "libcrypto.so." + major, version: version}
	}
	paired := candidate{
		path: filepath.Join(dir, "libssl.so.3"), crypto: filepath.Join(dir, "libcrypto.so.3"), cryptoName: "libcrypto.so.3",
	}
	mac := func(dir, major, version string) candidate {
		return candidate{path: dir + "/libssl." + major + ".dylib", version: version}
	}
	for _, c := range []struct {
		goos, goarch, spec string
		want               []candidate
	}{
		{"linux", "amd64", "", []candidate{named("4", ""), named("3", ""), named("1.1", "")}},
		{"linux", "amd64", "3", []candidate{named("3", "3")}},
		{"linux", "arm64", "3.5", []candidate{named("3", "3.5")}},
		{"linux", "amd64", "1.1", []candidate{named("1.1", "1.1")}},
		{"linux", "amd64", "1.1.1w", []candidate{named("1.1", "1.1.1w")}},
		{"linux", "amd64", "4", []candidate{named("4", "4")}},
		{"linux", "amd64", "7", []candidate{named("7", "7")}},
		{"linux", "amd64", dir, []candidate{paired, {path: filepath.Join(dir, "libssl.so.1.1"), cryptoName: "libcrypto.so.1.1"}}},
		{"linux", "amd64", paired.path, []candidate{paired}},
		{"linux", "amd64", "/nonexistent", []candidate{{path: "/nonexistent"}}},
		{"linux", "amd64", "libssl.so.3", []candidate{named("3", "")}},
		{"freebsd", "amd64", "3", []candidate{named("3", "3")}},
		{"darwin", "arm64", "3.5", []candidate{
			mac("/opt/homebrew/opt/openssl@3/lib", "3", "3.5"), mac("/usr/local/opt/openssl@3/lib", "3", "3.5"),
			mac("/opt/local/libexec/openssl3/lib", "3", "3.5"), mac("/usr/local/lib", "3", "3.5"),
		}},
		{"darwin", "arm64", "1.1", []candidate{
			mac("/opt/homebrew/opt/openssl@1.1/lib", "1.1", "1.1"), mac("/usr/local/opt/openssl@1.1/lib", "1.1", "1.1"),
			mac("/opt/local/libexec/openssl11/lib", "1.1", "1.1"), mac("/usr/local/lib", "1.1", "1.1"),
		}},
		{"darwin", "arm64", dir, []candidate{{
			path: filepath.Join(dir, "libssl.3.dylib"), crypto: filepath.Join(dir, "libcrypto.3.dylib"), cryptoName: "libcrypto.3.dylib",
		}}},
		{"windows", "amd64", "", []candidate{
			{path: "libssl-4-x64.dll"}, {path: "libssl-3-x64.dll"}, {path: "libssl-1_1-x64.dll"},
		}},
		{"windows", "arm64", "3", []candidate{{path: "libssl-3-arm64.dll", version: "3"}}},
		{"windows", "386", "1.1.1", []candidate{{path: "libssl-1_1.dll", version: "1.1.1"}}},
	} {
		if got := (system{c.goos, c.goarch}).candidates(c.spec); !slices.Equal(got, c.want) {
			t.Errorf("%s %s, %q: got %+v, want %+v", c.goos, c.goarch, c.spec, got, c.want)
		}
	}
}

// TestNeverApples: on macOS no library is loaded that aborts the process, or that is in the current
// folder.
func TestNeverApples(t *testing.T) {
	mac := system{"darwin", "arm64"}
	for spec, refused := range map[string]bool{
		"libssl.dylib": true, "libssl.3.dylib": true, "/usr/lib/libssl.dylib": true, "/usr/lib/libssl.46.dylib": true,
		"/System/Library/Frameworks/libssl.dylib": true, "": false, "3": false, "/opt/x/libssl.dylib": false, "./libssl.3.dylib": false,
	} {
		if got := mac.refusal(spec); (got != "") != refused {
			t.Errorf("%q: refused for %q", spec, got)
		}
	}
	for _, spec := range []string{"", "3", "1.1"} {
		for _, c := range mac.candidates(spec) {
			if !filepath.IsAbs(c.path) || strings.HasPrefix(c.path, "/usr/lib/") || strings.HasSuffix(c.path, "libssl.dylib") {
				t.Errorf("%q: tries %s", spec, c.path)
			}
		}
	}
	if got := (system{"linux", "amd64"}).refusal("libssl.so.3"); got != "" {
		t.Errorf("refused on Linux: %s", got)
	}
}

func TestHasVersion(t *testing.T) {
	for _, c := range []struct {
		version, spec string
		has           bool
	}{
		{"3.5.7", "3", true}, {"3.5.7", "3.5", true}, {"3.5.7", "3.5.7", true}, {"3.5.7", "3.50", false},
		{"3.0.19", "3.5", false}, {"3.50.1", "3.5", false}, {"1.1.1w", "1.1", true}, {"1.1.1w", "1.1.1", true}, {"1.1.1w", "1", true},
		{"3.5.70", "3.5.7", false}, {"4.0.0-dev", "4", true},
	} {
		if got := hasVersion(c.version, c.spec); got != c.has {
			t.Errorf("%s is a %s: %v", c.version, c.spec, got)
		}
	}
}

// TestLoadFailures runs in processes of their own: a process loads one library, once.
func TestLoadFailures(t *testing.T) {
	if spec := os.Getenv("OSSL_TEST_LOAD"); spec != "" {
		_, err := Load(spec)
		var failure *LoadError
		if !errors.Is(err, ErrUnavailable) || !errors.As(err, &failure) || len(failure.Tried) == 0 {
			t.Fatalf("got %v", err)
		}
		if want := os.Getenv("OSSL_TEST_WANT"); !strings.Contains(err.Error(), want) {
			t.Fatalf("%q lacks %q", err, want)
		}
		// Not remembered: a later call finds the library.
		lib, err := Load("")
		if err != nil {
			t.Fatal(err)
		}
		if lib.Number < 0x10101000 || lib.Path == "" || lib.CryptoPath == "" {
			t.Fatalf("%+v", lib)
		}
		// Afterwards there is no other.
		if _, err := Load(spec); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("got %v after another library was loaded", err)
		}
		return
	}
	dir := t.TempDir()
	broken := filepath.Join(dir, "libssl.so.3")
	if err := os.WriteFile(broken, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		"/nonexistent/libssl.so.3": "/nonexistent/libssl.so.3",
		"/nonexistent":             "/nonexistent",
		"9":                        "libssl.so.9",
		"3.99":                     "",
		dir:                        broken,
		broken:                     broken,
		"libc.so.6":                "no OpenSSL_version_num",
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLoadFailures$")
		cmd.Env = append(os.Environ(), "OSSL_TEST_LOAD="+spec, "OSSL_TEST_WANT="+want, "GORACE=atexit_sleep_ms=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", spec, err, out)
		}
	}
}
