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

// EnvLibrary names the environment variable that chooses the library: a version such as "3", "3.5"
// or "1.1", the path of libssl, or the path of a folder that holds it.
const EnvLibrary = "OSSL_LIBRARY"

// EnvSlim names the environment variable that, if it is "off" when the library is loaded, prevents
// the use of the slim library context on OpenSSL 3.0 and later. The slim context only affects
// speed, see slim.c.
const EnvSlim = "OSSL_SLIM"

// EnvShards names the environment variable with the number of shards of Contexts that aren't given one.
const EnvShards = "OSSL_SHARDS"

// A LoadError lists every library that was tried and why it was not used, or contains the reason
// why this program can't load any.
type LoadError struct {
	Spec   string   // the requested library, or ""
	Tried  []string // "name: reason"
	Remedy string   // if libraries were tried, or ""
	Fault  string   // the program's, with a remedy, or ""
}

func (e *LoadError) Error() string {
	asked := ""
	if e.Spec != "" {
		asked = fmt.Sprintf(" (requested: %q)", e.Spec)
	}
	if e.Fault != "" {
		return fmt.Sprintf("%v%s: %s", ErrUnavailable, asked, e.Fault)
	}
	s := fmt.Sprintf("%v%s; tried:\n\t%s", ErrUnavailable, asked, strings.Join(e.Tried, "\n\t"))
	if e.Remedy != "" {
		s += "\n" + e.Remedy
	}
	return s
}

// Unwrap makes errors.Is(err, ErrUnavailable) true.
func (e *LoadError) Unwrap() error { return ErrUnavailable }

var (
	loadMu sync.Mutex
	loaded *Library // guarded by loadMu

	// privileged reports whether the process has more rights than the user who started it. Then the
	// environment must not choose the library.
	privileged = isPrivileged
)

// Privileged reports whether the process has more rights than the user who started it, as a
// set-user-ID program has.
func Privileged() bool { return privileged() }

// AtLeast reports whether the library is there and of a version or later.
func AtLeast(version uint64) bool {
	lib, err := Load("")
	return err == nil && lib.Number >= version
}

// InUse returns the library if it is loaded, or nil.
func InUse() *Library {
	loadMu.Lock()
	defer loadMu.Unlock()
	return loaded
}

// Load loads the requested library; "" means the environment's choice, or else the newest of 4, 3
// and 1.1 on this host. It is loaded once and never unloaded. A failure is not remembered: a later
// call tries again.
func Load(spec string) (*Library, error) {
	loadMu.Lock()
	defer loadMu.Unlock()
	explicit := spec != ""
	if !explicit {
		spec = os.Getenv(EnvLibrary)
	}
	if !explicit && spec != "" && privileged() {
		return nil, &LoadError{Spec: spec, Tried: []string{EnvLibrary +
			" is not allowed: this program has more rights than the user who started it"}}
	}
	if loaded != nil {
		if explicit && !loaded.matches(spec) {
			return nil, &LoadError{Spec: spec, Tried: []string{fmt.Sprintf("%s %s: already loaded, and a process uses one OpenSSL",
				loaded.Path, loaded.Version())}}
		}
		return loaded, nil
	}
	failure := &LoadError{Spec: spec, Fault: programFault()}
	if failure.Fault != "" {
		return nil, failure
	}
	host := system{runtime.GOOS, runtime.GOARCH}
	if refusal := host.refusal(spec); refusal != "" {
		failure.Tried = append(failure.Tried, fmt.Sprintf("%s: %s", spec, refusal))
		return nil, failure
	}
	for _, c := range host.candidates(spec) {
		lib, err := try(c)
		if err != nil {
			reason := strings.TrimPrefix(err.Error(), c.path+": ") // the system's loader names the file too
			failure.Tried = append(failure.Tried, c.path+": "+reason)
			var mismatch *mismatchError
			if errors.As(err, &mismatch) {
				return nil, failure // the fault is in the process, so an older or another OpenSSL is no remedy
			}
			var fault *ConfigFault
			if errors.As(err, &fault) {
				return nil, failure // likewise
			}
			continue
		}
		loaded = lib
		return lib, nil
	}
	failure.Remedy = host.remedy(spec)
	return nil, failure
}

// matches reports whether the loaded library satisfies an explicit request.
func (l *Library) matches(spec string) bool {
	if isVersion(spec) {
		return hasVersion(l.Version(), spec)
	}
	path, err := filepath.EvalSymlinks(spec)
	return err == nil && (path == l.Path || path == filepath.Dir(l.Path))
}

// hasVersion reports whether version is spec or one of its patch releases: 3.5.7 is a 3.5 and a 3,
// 1.1.1w is a 1.1.1 and a 1.1.
func hasVersion(version, spec string) bool {
	rest, ok := strings.CutPrefix(version, spec)
	return ok && (rest == "" || rest[0] == '.' || rest[0] >= 'a')
}

// try loads a candidate if its files, and those that it needs, are complete.
func try(c candidate) (*Library, error) {
	if s := hostSearch(); s != nil {
		for _, name := range []string{c.crypto, c.path} {
			if err := s.check(name); err != nil {
				return nil, err
			}
		}
	}
	return tryLoad(c)
}
