//go:build cgo

package libssl

// #include "shim.h"
import "C"

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

// errorKind returns the kind of a packed error code and, depending on it, the errno or libssl's
// reason. The library must be loaded.
func errorKind(code uint64) (kind, number int) {
	var n C.int
	kind = int(C.ossl_error_kind(C.ulong(code), &n))
	return kind, int(n)
}
