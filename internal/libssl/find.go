package libssl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A candidate is a libssl to try.
type candidate struct {
	path       string // its name or path
	crypto     string // the libcrypto to load first, or ""
	cryptoName string // the name of its libcrypto dependency, or "" if unknown
	version    string // the version that it must have, or ""
}

// A system is an operating system's rules for naming and finding OpenSSL. The code works on text
// only, so tests on one system can check the others' rules.
type system struct {
	goos, goarch string
}

// majors are OpenSSL's major versions in the form used in file names, the newest first.
var majors = []string{"4", "3", "1.1"}

// file returns the name of a library's file: libssl.so.3, libssl.3.dylib, libssl-3-x64.dll.
func (s system) file(lib, major string) string {
	switch s.goos {
	case "darwin", "ios":
		return lib + "." + major + ".dylib"
	case "windows":
		processor := map[string]string{"amd64": "-x64", "arm64": "-arm64"}[s.goarch]
		return lib + "-" + strings.ReplaceAll(major, ".", "_") + processor + ".dll"
	}
	return lib + ".so." + major
}

// folders returns the folders to search, or "" for the search of the system's loader.
//
// On macOS the loader's search is not used: for a name alone, dlopen searches the current folder,
// which any user may have written to, and /usr/lib, where Apple's own libssl is, which aborts the
// process that loads it. So these are the prefixes of Homebrew, MacPorts and OpenSSL's own make
// install.
func (s system) folders(major string) []string {
	if s.goos != "darwin" {
		return []string{""}
	}
	return []string{
		"/opt/homebrew/opt/openssl@" + major + "/lib", // arm64
		"/usr/local/opt/openssl@" + major + "/lib",    // amd64
		"/opt/local/libexec/openssl" + strings.ReplaceAll(major, ".", "") + "/lib",
		"/usr/local/lib",
	}
}

// ofMajor lists the possible places of a major version. If version is not "", the library must have
// it.
func (s system) ofMajor(major, version string) []candidate {
	var list []candidate
	for _, dir := range s.folders(major) {
		c := candidate{path: s.file("libssl", major), version: version}
		if dir != "" {
			c.path = dir + "/" + c.path
		} else if s.goos != "windows" {
			c.cryptoName = s.file("libcrypto", major)
		}
		list = append(list, c)
	}
	return list
}

func isVersion(spec string) bool {
	return spec != "" && spec[0] >= '0' && spec[0] <= '9' && strings.Trim(spec, "0123456789.abcdefghijklmnopqrstuvwxyz") == "" &&
		!strings.ContainsAny(spec, `/\`)
}

// candidates lists the libraries to try for spec, in order.
func (s system) candidates(spec string) []candidate {
	switch {
	case spec == "":
		var list []candidate
		for _, major := range majors {
			list = append(list, s.ofMajor(major, "")...)
		}
		return list
	case isVersion(spec):
		major, _, _ := strings.Cut(spec, ".")
		if major == "1" {
			major = "1.1"
		}
		return s.ofMajor(major, spec)
	}
	if s.goos == "windows" {
		// A path's own folder is searched only if the path is absolute, and separators matter.
		if full, err := filepath.Abs(spec); err == nil && strings.ContainsAny(spec, `/\`) {
			spec = full
		}
	}
	if info, err := os.Stat(spec); err == nil && info.IsDir() {
		var list []candidate
		for _, major := range majors {
			c := s.besides(filepath.Join(spec, s.file("libssl", major)))
			if _, err := os.Stat(c.path); err == nil {
				list = append(list, c)
			}
		}
		if list != nil {
			return list
		}
	}
	return []candidate{s.besides(spec)}
}

// besides pairs a libssl given by path with the libcrypto in the same folder, if there is one.
func (s system) besides(path string) candidate {
	dir, base := filepath.Split(path)
	name := strings.Replace(base, "libssl", "libcrypto", 1)
	if name == base {
		return candidate{path: path}
	}
	c := candidate{path: path, cryptoName: name}
	if crypto := filepath.Join(dir, name); dir != "" && exists(crypto) {
		c.crypto = crypto
	}
	return c
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// refusal returns the reason why a library requested by name or path is not even tried, or "".
func (s system) refusal(spec string) string {
	if s.goos != "darwin" || spec == "" || isVersion(spec) {
		return ""
	}
	switch dir := filepath.Dir(spec); {
	case !strings.Contains(spec, "/"):
		return "a name without a path would be searched for in the current folder; use a path"
	case dir == "/usr/lib" || strings.HasPrefix(dir, "/System/"):
		return "Apple's own library ends the process that loads it"
	}
	return ""
}

// A mismatchError is the error for a libssl that is bound to another libcrypto than its own. Two
// OpenSSLs in a process do no harm as long as they stay separate.
type mismatchError struct{ reason string }

func (e *mismatchError) Error() string { return e.reason }

// checkPair returns an error for a libssl whose libcrypto is not the one that it was installed
// with. libssl's dependency is a short name, so it gets the library that already has that name,
// even if another part of the program, or an attempt to load another OpenSSL, brought it. The two
// flags report whether the libraries were already in the process.
func checkPair(lib *Library, c candidate, cryptoBefore, sslBefore bool) error {
	dir := filepath.Dir(lib.Path)
	ok := dir == filepath.Dir(lib.CryptoPath)
	switch {
	case c.crypto != "":
		ok = sameFile(c.crypto, lib.CryptoPath)
	case ok:
	case sslBefore:
		// The code that loaded it may have paired it wrongly. On systems that keep the two in
		// different folders, no other libcrypto is beside libssl.
		beside := filepath.Join(dir, c.cryptoName)
		ok = c.cryptoName != "" && (!exists(beside) || sameFile(beside, lib.CryptoPath))
	default:
		ok = !cryptoBefore // otherwise the system's loader was free to choose
	}
	switch {
	case ok:
		return nil
	case c.crypto != "" && !cryptoBefore && !sslBefore:
		// musl's loader searches for a dependency even if it has loaded a file of this name by path.
		return &mismatchError{fmt.Sprintf("not a matching pair: %s uses %s, which the program loader has found: set LD_LIBRARY_PATH=%s",
			lib.Path, lib.CryptoPath, dir)}
	}
	return &mismatchError{fmt.Sprintf("not a matching pair: %s uses %s, which was in the process before", lib.Path, lib.CryptoPath)}
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
