//go:build cgo

package libssl

// #include "shim.h"
import "C"

import "syscall"

// errorKind returns the kind of a packed error code and, if it is the operating system's, the errno.
// The library must be loaded.
func errorKind(code uint64) (kind int, errno syscall.Errno) {
	var number C.int
	kind = int(C.ossl_error_kind(C.ulong(code), &number))
	return kind, syscall.Errno(number)
}
