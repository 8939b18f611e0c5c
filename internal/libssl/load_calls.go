package libssl

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unsafe"
)

// isPrivileged reports whether the process has more rights than the user who started it.
func isPrivileged() bool { return c_ossl_privileged() == 1 }

// isLoaded reports whether a library is in the process, by its name or path.
func isLoaded(name string) bool {
	s := c_CString(name)
	defer c_free(unsafe.Pointer(s))
	return c_dl_is_loaded(s) == 1
}

// searchFolders returns the folders in which the program loader searches for a library by its name,
// in order, and whether they are known.
func searchFolders() ([]string, bool) {
	list := c_dl_search_folders()
	defer c_free(unsafe.Pointer(list))
	return strings.FieldsFunc(c_GoString(list), func(r rune) bool { return r == '\n' }), list != nil
}

// ObjectHash returns the SHA-256 hash of the object with the C code, or "" if cgo compiled it.
func ObjectHash() string { return objectHash }

// programFault returns the reason why this program can't load any library, with a remedy, or "".
func programFault() string {
	if linkFault != "" {
		return linkFault
	}
	if c_dl_static() == 1 {
		return "this program is linked statically, so it can't load a library: link it without -static"
	}
	return ""
}

// tryLoad loads one candidate and reads its version and paths from the library itself.
func tryLoad(c candidate) (*Library, error) {
	path, crypto, name := c_CString(c.path), cString(c.crypto), cString(c.cryptoName)
	defer c_free(unsafe.Pointer(path))
	defer c_free(unsafe.Pointer(crypto))
	defer c_free(unsafe.Pointer(name))
	size := c_ossl_report_size()
	report := (*c_char)(c_malloc(size))
	defer c_free(unsafe.Pointer(report))
	found := (*c_ossl_library)(c_malloc(c_sizeof_ossl_library))
	defer c_free(unsafe.Pointer(found))
	switch c_ossl_load(path, crypto, name, found, report, size) {
	case 0:
	case c_OSSL_LOAD_MISMATCH:
		return nil, &mismatchError{c_GoString(report)}
	default:
		return nil, errors.New(c_GoString(report))
	}
	lib := &Library{
		Number:     uint64(found.version),
		Text:       c_GoString(found.text),
		Path:       c_GoString(&found.ssl[0]),
		CryptoPath: c_GoString(&found.crypto[0]),
	}
	if c.version != "" && !hasVersion(lib.Version(), c.version) {
		return nil, fmt.Errorf("is version %s", lib.Version())
	}
	if err := checkPair(lib, c, found.crypto_before == 1, found.ssl_before == 1); err != nil {
		return nil, err
	}
	if err := use(report, size); err != nil {
		return nil, err
	}
	allowSlim()
	return lib, nil
}

// use makes the library that ossl_load found the one in use, if the modules that it will load are
// complete. libcrypto reads its configuration once: if it can't be read now, but perhaps later, it
// must not come to that.
func use(report *c_char, size c_size_t) (err error) {
	if c_ossl_load_begin() != 1 {
		return syscall.ENOMEM
	}
	defer func() {
		if err != nil {
			c_ossl_load_give_up()
		}
	}()
	config, fault := ReadConfig()
	defer func() {
		if err == nil && fault == nil {
			config.lend()
		} else {
			config.Close()
		}
	}()
	if fault != nil && fault.Passing() {
		return fmt.Errorf("%s: %w", fault.File, fault)
	}
	known := config.parsed()
	if fault != nil {
		known = nil
	}
	if _, err := checkModules(c_ossl_modules_of_config(known)); err != nil {
		return fmt.Errorf("module in openssl.cnf: %w", err)
	}
	if c_ossl_use(report, size) != 0 {
		return errors.New(c_GoString(report))
	}
	config.remember(fault)
	return nil
}

// PeerKeysKept returns the number of keys of peers' certificates that did not have to be decoded
// (slimkey.c), and whether this library keeps any. It is for tests.
func PeerKeysKept() (n uint64, kept bool) {
	return uint64(c_ossl_slim_keys_found()), c_ossl_slim_keys_kept() == 1
}

// Made returns the number of SSL_CTXs that were made, except FIPS mode's, and whether there is a slim
// library context. It is for tests.
func Made() (contexts uint64, slim bool) {
	return uint64(c_ossl_ssl_ctxs_made()), c_ossl_slim_library() != nil
}

// SlimHMAC returns an HMAC by the slim library context (slimmac.c), or nil. It is for tests.
func SlimHMAC(digest string, key, data []byte) []byte {
	name := c_CString(digest)
	defer c_free(unsafe.Pointer(name))
	out := make([]byte, 64)
	return out[:c_ossl_slim_hmac(name, bytePtr(key), c_size_t(len(key)), bytePtr(data), c_size_t(len(data)), bytePtr(out))]
}

// SchedulesSame reports whether the slim library context's key schedules and HMAC return the same
// bytes as the default one's (schedule.c, slimmac.c). The slim one must be used. It is for tests.
func SchedulesSame() bool { return c_ossl_schedule_all_same() == 1 }

// DistrustSchedules sets, or clears, the result that they return other bytes. It is for tests.
func DistrustSchedules(on bool) { c_ossl_schedule_distrust(c_int(flag(on))) }
