package libssl

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// EnvLibrary names the environment variable that chooses the library: a version such as "3", "3.5" or "1.1", the path of libssl,
// or the path of a folder that holds it.
const EnvLibrary = "OSSL_LIBRARY"

// EnvSlim names the environment variable that, set to "off" before the library is loaded, keeps OpenSSL 3.0 and 3.1 from using a
// library context that offers only what TLS needs of the default provider: a matter of speed only, see slim.c.
const EnvSlim = "OSSL_SLIM"

// A LoadError tells every library that was tried and why it was not used.
type LoadError struct {
	Spec  string   // what was asked for, or ""
	Tried []string // "name: reason"
}

func (e *LoadError) Error() string {
	asked := ""
	if e.Spec != "" {
		asked = fmt.Sprintf(" (asked for %q)", e.Spec)
	}
	return fmt.Sprintf("%v%s; tried:\n\t%s", ErrUnavailable, asked, strings.Join(e.Tried, "\n\t"))
}

// Unwrap makes errors.Is(err, ErrUnavailable) true.
func (e *LoadError) Unwrap() error { return ErrUnavailable }

var (
	loadMu sync.Mutex
	loaded *Library // guarded by loadMu
)

// Load loads the library that spec asks for; "" means the environment's choice, else the newest of 4, 3 and 1.1 that is there.
// It is loaded once and never unloaded. A failure is not remembered: a later call tries again.
func Load(spec string) (*Library, error) {
	loadMu.Lock()
	defer loadMu.Unlock()
	explicit := spec != ""
	if !explicit {
		spec = os.Getenv(EnvLibrary)
	}
	if loaded != nil {
		if explicit && !loaded.matches(spec) {
			return nil, &LoadError{Spec: spec, Tried: []string{fmt.Sprintf("%s %s: already loaded, and a process uses one OpenSSL",
				loaded.Path, loaded.Version())}}
		}
		return loaded, nil
	}
	failure := &LoadError{Spec: spec}
	for _, c := range candidates(spec) {
		lib, err := tryLoad(c)
		if err != nil {
			failure.Tried = append(failure.Tried, fmt.Sprintf("%s: %v", c.path, err))
			continue
		}
		loaded = lib
		return lib, nil
	}
	return nil, failure
}

// A candidate is a libssl to try: its name or path, the libcrypto to load before it, and the version that it must have.
type candidate struct {
	path, crypto, version string
}

var sonames = map[string]string{"4": "4", "3": "3", "1": "1.1"} // major version: soname suffix

func libName(lib, suffix string) string {
	if runtime.GOOS == "darwin" {
		return lib + "." + suffix + ".dylib"
	}
	return lib + ".so." + suffix
}

func isVersion(spec string) bool {
	return spec != "" && spec[0] >= '0' && spec[0] <= '9' && strings.Trim(spec, "0123456789.abcdefghijklmnopqrstuvwxyz") == "" &&
		!strings.ContainsAny(spec, `/\`)
}

// candidates lists what to try for spec, in order.
func candidates(spec string) []candidate {
	switch {
	case spec == "":
		return []candidate{{path: libName("libssl", "4")}, {path: libName("libssl", "3")}, {path: libName("libssl", "1.1")}}
	case isVersion(spec):
		major, _, _ := strings.Cut(spec, ".")
		suffix, ok := sonames[major]
		if !ok {
			suffix = major
		}
		return []candidate{{path: libName("libssl", suffix), version: spec}}
	}
	if info, err := os.Stat(spec); err == nil && info.IsDir() {
		var list []candidate
		for _, suffix := range []string{"4", "3", "1.1"} {
			c := besides(filepath.Join(spec, libName("libssl", suffix)))
			if _, err := os.Stat(c.path); err == nil {
				list = append(list, c)
			}
		}
		if list != nil {
			return list
		}
	}
	return []candidate{besides(spec)}
}

// besides pairs a libssl given by path with the libcrypto in the same folder, if there is one.
func besides(path string) candidate {
	dir, base := filepath.Split(path)
	crypto := filepath.Join(dir, strings.Replace(base, "libssl", "libcrypto", 1))
	if dir == "" || crypto == path {
		return candidate{path: path}
	}
	if _, err := os.Stat(crypto); err != nil {
		return candidate{path: path}
	}
	return candidate{path: path, crypto: crypto}
}

// matches reports whether an explicit request is met by the library that is loaded.
func (l *Library) matches(spec string) bool {
	if isVersion(spec) {
		return hasVersion(l.Version(), spec)
	}
	path, err := filepath.EvalSymlinks(spec)
	return err == nil && (path == l.Path || path == filepath.Dir(l.Path))
}

// hasVersion reports whether version is spec or one of its patch releases: 3.5.7 is a 3.5 and a 3, 1.1.1w is a 1.1.1 and a 1.1.
func hasVersion(version, spec string) bool {
	rest, ok := strings.CutPrefix(version, spec)
	return ok && (rest == "" || rest[0] == '.' || rest[0] >= 'a')
}
