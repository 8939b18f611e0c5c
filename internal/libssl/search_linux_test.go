//go:build cgo || ossl_nocgo

package libssl

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibrariesCutShort loads copies of the host's libraries that were cut short, by their names and
// by path. Each is loaded in a process of its own, since the program loader reads LD_LIBRARY_PATH
// when a process starts, and a library that is not refused crashes it.
func TestLibrariesCutShort(t *testing.T) {
	if spec := os.Getenv("OSSL_TEST_CUT_SPEC"); spec != "" {
		loadCutLibrary(t, spec)
		return
	}
	lib, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	ssl, crypto := libraryOf(t, lib.Path), libraryOf(t, lib.CryptoPath)
	// The same libssl, for a libcrypto whose name is in no process.
	stray := library{ssl.name, bytes.ReplaceAll(ssl.code, []byte(crypto.name+"\x00"), []byte("libstranj"+crypto.name[9:]+"\x00"))}
	lost := library{"libstranj" + crypto.name[9:], crypto.code}
	_, major, _ := strings.Cut(ssl.name, ".so.")
	for _, test := range []struct {
		does       string
		ssl, other library
		sslParts   int // of 64; 64 is the whole file
		otherParts int
		beside     bool // the other library is in the same folder, else in the folder of LD_LIBRARY_PATH
	}{
		{"whole", ssl, crypto, 64, 64, true},
		{"libssl without the end of its headers", ssl, crypto, 0, 64, true},
		{"libssl, 1 of 64 parts", ssl, crypto, 1, 64, true},
		{"libssl, 16 of 64 parts", ssl, crypto, 16, 64, true},
		{"libssl, 32 of 64 parts", ssl, crypto, 32, 64, true},
		{"libssl, 60 of 64 parts", ssl, crypto, 60, 64, true},
		{"libcrypto, 1 of 64 parts", ssl, crypto, 64, 1, true},
		{"libcrypto, 32 of 64 parts", ssl, crypto, 64, 32, true},
		{"libcrypto, 60 of 64 parts", ssl, crypto, 64, 60, true},
		{"a dependency elsewhere", stray, lost, 64, 32, false},
	} {
		t.Run(test.does, func(t *testing.T) {
			dir, elsewhere := t.TempDir(), t.TempDir()
			file := test.ssl.write(t, dir, test.sslParts)
			if test.beside {
				elsewhere = dir
			}
			other := test.other.write(t, elsewhere, test.otherParts)
			cut := ""
			if test.sslParts < 64 {
				cut = file
			} else if test.otherParts < 64 {
				cut = other
			}
			specs := map[string]string{"by path": file, "by folder": dir}
			if test.beside {
				specs["by name"] = major
				specs["by the name of a file"] = test.ssl.name
				specs["by default"] = "default"
			}
			for how, spec := range specs {
				cmd := exec.Command(os.Args[0], "-test.run=^TestLibrariesCutShort$")
				cmd.Env = append(os.Environ(), "OSSL_TEST_CUT_SPEC="+spec, "OSSL_TEST_CUT_FILE="+cut, "OSSL_TEST_CUT_MAJOR="+major,
					"LD_LIBRARY_PATH="+elsewhere, EnvLibrary+"=", "GORACE=atexit_sleep_ms=0")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", how, err, out)
				}
			}
		})
	}
}

type library struct {
	name string
	code []byte // the part of the file that the program loader maps
}

func libraryOf(t *testing.T, path string) library {
	t.Helper()
	e, err := openELF(path)
	defer e.close()
	if err != nil || e == nil {
		t.Fatal(path, err)
	}
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := uint64(0)
	for _, s := range e.segments {
		end = max(end, s.offset+s.size)
	}
	return library{e.linkage().soname, code[:end]}
}

// write writes the first parts of 64 of the library into dir. 0 means only the ELF header.
func (l library) write(t *testing.T, dir string, parts int) string {
	t.Helper()
	file := filepath.Join(dir, l.name)
	n := len(l.code) / 64 * parts
	if parts == 64 {
		n = len(l.code)
	}
	if err := os.WriteFile(file, l.code[:max(n, 64)], 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// loadCutLibrary runs in a process of its own.
func loadCutLibrary(t *testing.T, spec string) {
	cut, major := os.Getenv("OSSL_TEST_CUT_FILE"), os.Getenv("OSSL_TEST_CUT_MAJOR")
	byDefault := spec == "default"
	if byDefault {
		spec = ""
	}
	lib, err := Load(spec)
	if cut == "" { // another C library than this process's may be missing to it
		if err != nil && (!errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "cut short")) {
			t.Fatal(err)
		}
		return
	}
	if err == nil && (byDefault && !strings.HasPrefix(lib.Version(), major) ||
		!strings.Contains(spec, "/") && comesFirst(t, lib.Path)) {
		return // the search went on, or never came to the file
	}
	var failure *LoadError
	if !errors.Is(err, ErrUnavailable) || !errors.As(err, &failure) {
		t.Fatalf("got %v, %v", lib, err)
	}
	if want := fmt.Sprintf("%s: cut short", cut); !strings.Contains(err.Error(), want) {
		t.Errorf("%q lacks %q", err, want)
	}
	if byDefault && len(failure.Tried) != len(majors) {
		t.Errorf("the search ended early: %q", failure.Tried)
	}
}

// comesFirst reports whether the program has a path of its own for libraries, as ci/matrix's have,
// that has this one.
func comesFirst(t *testing.T, path string) bool {
	folders, ok := searchFolders()
	for _, folder := range folders {
		if folder == os.Getenv("LD_LIBRARY_PATH") {
			return false
		}
		if sameFile(filepath.Join(folder, filepath.Base(path)), path) {
			t.Logf("%s comes before LD_LIBRARY_PATH", folder)
			return true
		}
	}
	if !ok {
		t.Error("the loader doesn't tell its folders")
	}
	return false
}
