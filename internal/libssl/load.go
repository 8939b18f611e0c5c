package libssl

import (
	"errors"
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

// EnvSlim names the environment variable that, set to "off" before the library is loaded, keeps OpenSSL 3.0 and later from using
// a library context that has less and cheaper than the default provider: a matter of speed only, see slim.c.
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

	// privileged says that the process has more rights than who started it, whose environment must not choose its library.
	privileged = isPrivileged
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
	if !explicit && spec != "" && privileged() {
		return nil, &LoadError{Spec: spec, Tried: []string{EnvLibrary +
			": whoever started this program has fewer rights than it, and may not choose its code"}}
	}
	if loaded != nil {
		if explicit && !loaded.matches(spec) {
			return nil, &LoadError{Spec: spec, Tried: []string{fmt.Sprintf("%s %s: already loaded, and a process uses one OpenSSL",
				loaded.Path, loaded.Version())}}
		}
		return loaded, nil
	}
	failure := &LoadError{Spec: spec}
	host := system{runtime.GOOS, runtime.GOARCH}
	if refusal := host.refusal(spec); refusal != "" {
		failure.Tried = append(failure.Tried, fmt.Sprintf("%s: %s", spec, refusal))
		return nil, failure
	}
	for _, c := range host.candidates(spec) {
		lib, err := try(c)
		if err != nil {
			failure.Tried = append(failure.Tried, fmt.Sprintf("%s: %v", c.path, err))
			var mismatch *mismatchError
			if errors.As(err, &mismatch) {
				break // what is wrong is in the process, and an older OpenSSL is not what to do about it
			}
			continue
		}
		loaded = lib
		return lib, nil
	}
	return nil, failure
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

func try(c candidate) (*Library, error) {
	for _, name := range []string{c.crypto, c.path} {
		if !strings.ContainsRune(name, filepath.Separator) {
			continue // the loader knows where
		}
		if err := checkWhole(name); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	return tryLoad(c)
}
