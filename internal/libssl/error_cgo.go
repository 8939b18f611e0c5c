//go:build cgo

package libssl

// #include "shim.h"
import "C"

import "syscall"

const errorSlots = C.OSSL_MAX_ERRORS

func codes(packed *[errorSlots]C.ulong) []uint64 {
	var list []uint64
	for _, code := range packed {
		if code == 0 {
			break
		}
		list = append(list, uint64(code))
	}
	return list
}

// Reason returns OpenSSL's text for a packed error code, or "".
func Reason(code uint64) string {
	if text := C.ossl_error_reason(C.ulong(code)); text != nil {
		return C.GoString(text)
	}
	return ""
}

// errorKind returns the kind of a packed error code and, if it is the operating system's, the
// errno. The library must be loaded.
func errorKind(code uint64) (kind int, errno syscall.Errno) {
	var number C.int
	kind = int(C.ossl_error_kind(C.ulong(code), &number))
	return kind, syscall.Errno(number)
}
