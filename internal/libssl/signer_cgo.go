//go:build cgo

package libssl

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"crypto"
	"errors"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// NewSignerCredential makes a credential of a chain and a key that only Go can use; the key must belong to the chain's leaf.
// Handshakes that sign with it call signer on the thread that is inside libssl, so the connection must come from
// [Context.NewConn]. sigalgs is as for [NewCredential].
func NewSignerCredential(chain [][]byte, signer crypto.Signer, sigalgs string, staple, scts []byte) (*Credential, error) {
	if err := checkSigner(signer, uint64(C.ossl_version())); err != nil {
		return nil, err
	}
	packed := PackChain(chain)
	list := cString(sigalgs)
	defer C.free(unsafe.Pointer(list))
	handle := cgo.NewHandle(signer)
	var errs [errorSlots]C.ulong
	p := C.ossl_cred_new_signer(bytePtr(packed), C.size_t(len(packed)), C.uintptr_t(handle), list,
		bytePtr(staple), C.size_t(len(staple)), bytePtr(scts), C.size_t(len(scts)), &errs[0])
	if p == nil {
		handle.Delete()
		return nil, &Error{Op: "load certificate for a crypto.Signer", Codes: codes(&errs)}
	}
	c := &Credential{p: p, callsGo: true}
	// C may hold the credential longer than this, but signs only for connections, and those keep c.
	runtime.AddCleanup(c, func(h cgo.Handle) { h.Delete() }, handle)
	return ownCredential(c), nil
}

// osslGoSign is called on libssl's thread to sign with a credential's signer. It returns the signature's length, 0 for a failure,
// which it tells the connection's SignObserver. No panic gets out.
//
//export osslGoSign
func osslGoSign(conn, signer C.uintptr_t, algorithm, hash, form C.int32_t, tbs *C.uint8_t, n C.size_t,
	sig *C.uint8_t, max C.size_t) (length C.size_t) {
	defer func() { _ = recover() }() // an observer's
	observer, _ := valueOf(conn).(SignObserver)
	fail := func(err error, panicked any) {
		if observer != nil {
			observer.SignFailed(err, panicked)
		}
	}
	key, ok := valueOf(signer).(crypto.Signer)
	if !ok {
		fail(errors.New("the crypto.Signer is gone"), nil)
		return 0
	}
	// A copy, since a signer may keep what it gets.
	message := C.GoBytes(unsafe.Pointer(tbs), C.int(n))
	made, panicked, err := sign(key, int(algorithm), crypto.Hash(hash), form == 1, message, int(max))
	if err != nil {
		fail(err, panicked)
		return 0
	}
	return C.size_t(copy(unsafe.Slice((*byte)(unsafe.Pointer(sig)), int(max)), made))
}

// valueOf returns what a handle refers to, nil if nothing any more.
func valueOf(handle C.uintptr_t) (v any) {
	defer func() { _ = recover() }()
	return cgo.Handle(handle).Value()
}
