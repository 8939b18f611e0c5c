//go:build cgo

package libssl

// #include <stdlib.h>
// #include "dl.h"
// #include "modules.h"
// #include "schedule.h"
// #include "shim.h"
// #include "slim.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unsafe"
)

// isPrivileged reports whether the process has more rights than the user who started it.
func isPrivileged() bool { return C.ossl_privileged() == 1 }

// isLoaded reports whether a library is in the process, by its name or path.
func isLoaded(name string) bool {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.dl_is_loaded(s) == 1
}

// searchFolders returns the folders in which the program loader searches for a library by its name,
// in order, and whether they are known.
func searchFolders() ([]string, bool) {
	list := C.dl_search_folders()
	defer C.free(unsafe.Pointer(list))
	return strings.FieldsFunc(C.GoString(list), func(r rune) bool { return r == '\n' }), list != nil
}

// programFault returns the reason why this program can't load any library, with a remedy, or "".
func programFault() string {
	if C.dl_static() == 1 {
		return "this program is linked statically, so it can't load a library: link it without -static"
	}
	return ""
}

// tryLoad loads one candidate and reads its version and paths from the library itself.
func tryLoad(c candidate) (*Library, error) {
	path, crypto, name := C.CString(c.path), cString(c.crypto), cString(c.cryptoName)
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(crypto))
	defer C.free(unsafe.Pointer(name))
	size := C.ossl_report_size()
	report := (*C.char)(C.malloc(size))
	defer C.free(unsafe.Pointer(report))
	found := (*C.ossl_library)(C.malloc(C.sizeof_ossl_library))
	defer C.free(unsafe.Pointer(found))
	switch C.ossl_load(path, crypto, name, found, report, size) {
	case 0:
	case C.OSSL_LOAD_MISMATCH:
		return nil, &mismatchError{C.GoString(report)}
	default:
		return nil, errors.New(C.GoString(report))
	}
	lib := &Library{
		Number:     uint64(found.version),
		Text:       C.GoString(found.text),
		Path:       C.GoString(&found.ssl[0]),
		CryptoPath: C.GoString(&found.crypto[0]),
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
func use(report *C.char, size C.size_t) (err error) {
	if C.ossl_load_begin() != 1 {
		return syscall.ENOMEM
	}
	defer func() {
		if err != nil {
			C.ossl_load_give_up()
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
	if _, err := checkModules(C.ossl_modules_of_config(known)); err != nil {
		return fmt.Errorf("module in openssl.cnf: %w", err)
	}
	if C.ossl_use(report, size) != 0 {
		return errors.New(C.GoString(report))
	}
	config.remember(fault)
	return nil
}

// PeerKeysKept returns the number of keys of peers' certificates that did not have to be decoded
// (slimkey.c), and whether this library keeps any. It is for tests.
func PeerKeysKept() (n uint64, kept bool) {
	return uint64(C.ossl_slim_keys_found()), C.ossl_slim_keys_kept() == 1
}

// Made returns the number of SSL_CTXs that were made, except FIPS mode's, and whether there is a slim
// library context. It is for tests.
func Made() (contexts uint64, slim bool) {
	return uint64(C.ossl_ssl_ctxs_made()), C.ossl_slim_library() != nil
}

// SlimHMAC returns an HMAC by the slim library context (slimmac.c), or nil. It is for tests.
func SlimHMAC(digest string, key, data []byte) []byte {
	name := C.CString(digest)
	defer C.free(unsafe.Pointer(name))
	out := make([]byte, 64)
	return out[:C.ossl_slim_hmac(name, bytePtr(key), C.size_t(len(key)), bytePtr(data), C.size_t(len(data)), bytePtr(out))]
}

// SchedulesSame reports whether the slim library context's key schedules and HMAC return the same
// bytes as the default one's (schedule.c, slimmac.c). The slim one must be used. It is for tests.
func SchedulesSame() bool { return C.ossl_schedule_all_same() == 1 }

// DistrustSchedules sets, or clears, the result that they return other bytes. It is for tests.
func DistrustSchedules(on bool) { C.ossl_schedule_distrust(C.int(flag(on))) }
