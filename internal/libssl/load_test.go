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
	for _, name := range []string{"libssl.so.3", "libcrypto.so.3", "libssl.so.1.1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for spec, want := range map[string][]candidate{
		"":       {{path: "libssl.so.4"}, {path: "libssl.so.3"}, {path: "libssl.so.1.1"}},
		"3":      {{path: "libssl.so.3", version: "3"}},
		"3.5":    {{path: "libssl.so.3", version: "3.5"}},
		"1.1":    {{path: "libssl.so.1.1", version: "1.1"}},
		"1.1.1w": {{path: "libssl.so.1.1", version: "1.1.1w"}},
		"4":      {{path: "libssl.so.4", version: "4"}},
		"7":      {{path: "libssl.so.7", version: "7"}},
		dir: {
			{path: filepath.Join(dir, "libssl.so.3"), crypto: filepath.Join(dir, "libcrypto.so.3")},
			{path: filepath.Join(dir, "libssl.so.1.1")},
		},
		filepath.Join(dir, "libssl.so.3"): {
			{path: filepath.Join(dir, "libssl.so.3"), crypto: filepath.Join(dir, "libcrypto.so.3")},
		},
		"/nonexistent": {{path: "/nonexistent"}},
		"libssl.so.3":  {{path: "libssl.so.3"}},
	} {
		if got := candidates(spec); !slices.Equal(got, want) {
			t.Errorf("%q: got %+v, want %+v", spec, got, want)
		}
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
		// And then there is no other.
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
		cmd.Env = append(os.Environ(), "OSSL_TEST_LOAD="+spec, "OSSL_TEST_WANT="+want)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", spec, err, out)
		}
	}
}

// TestMissingSymbols loads a library that has OpenSSL's version function and nothing else.
func TestMissingSymbols(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc)")
	}
	if os.Getenv("OSSL_TEST_MISSING") != "" {
		_, err := Load(os.Getenv("OSSL_TEST_MISSING"))
		if !errors.Is(err, ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		for _, want := range []string{"missing symbols:", "SSL_new", "SSL_read_ex", "BIO_new"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q lacks %q", err, want)
			}
		}
		return
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "fake.c")
	if err := os.WriteFile(source, []byte("unsigned long OpenSSL_version_num(void) { return 0x30000000L; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(dir, "libssl.so.3")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", lib, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestMissingSymbols$")
	cmd.Env = append(os.Environ(), "OSSL_TEST_MISSING="+lib)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
