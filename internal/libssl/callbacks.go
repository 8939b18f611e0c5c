//go:build cgo

package libssl

// #include <stdint.h>
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// osslGoVerify is called by libssl's thread for a chain that needs a verdict now. A panic is a refusal.
//
//export osslGoVerify
func osslGoVerify(handle C.uintptr_t, chain *C.uint8_t, n C.size_t) (verdict C.int32_t) {
	verdict = C.int32_t(VerdictInternal)
	defer func() { _ = recover() }()
	verifier, ok := cgo.Handle(handle).Value().(Verifier)
	if !ok || verifier == nil {
		return verdict
	}
	return C.int32_t(verifier.VerifyChain(unsafe.Slice((*byte)(unsafe.Pointer(chain)), int(n))))
}

// osslGoResume is called by libssl's thread for a session that a client wants to resume. A panic is a no.
//
//export osslGoResume
func osslGoResume(handle C.uintptr_t, chain *C.uint8_t, n C.size_t) (resume C.int32_t) {
	defer func() { _ = recover() }()
	verifier, ok := cgo.Handle(handle).Value().(Verifier)
	if !ok || verifier == nil {
		return 0
	}
	if verifier.Resume(unsafe.Slice((*byte)(unsafe.Pointer(chain)), int(n))) {
		return 1
	}
	return 0
}
