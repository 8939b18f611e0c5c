//go:build cgo && unix

package libssl

// #include <stdlib.h>
// #include "shim.h"
// #include "slim.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"
)

// tryLoad loads one candidate and reads from the library itself what it is.
func tryLoad(c candidate) (*Library, error) {
	path, crypto := C.CString(c.path), cString(c.crypto)
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(crypto))
	const size = 4096
	report := (*C.char)(C.malloc(2 * size))
	defer C.free(unsafe.Pointer(report))
	if C.ossl_load(path, crypto, report, size) != 0 {
		return nil, errors.New(C.GoString(report))
	}
	lib := &Library{Number: uint64(C.ossl_version()), Text: C.GoString(C.ossl_version_text(0))}
	if C.ossl_paths(report, (*C.char)(unsafe.Add(unsafe.Pointer(report), size)), size) == 0 {
		lib.Path, lib.CryptoPath = C.GoString(report), C.GoString((*C.char)(unsafe.Add(unsafe.Pointer(report), size)))
	}
	if c.version != "" && !hasVersion(lib.Version(), c.version) {
		return nil, fmt.Errorf("is version %s", lib.Version())
	}
	if c.crypto != "" && filepath.Dir(lib.Path) != filepath.Dir(lib.CryptoPath) {
		return nil, fmt.Errorf("uses %s: not a matching pair", lib.CryptoPath)
	}
	lib.Slim = os.Getenv(EnvSlim) != "off" && C.ossl_slim_setup() == 1
	return lib, nil
}
