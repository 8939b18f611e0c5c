//go:build cgo

package libssl

/*
#cgo CFLAGS: -O2 -Wall -Wno-unused-const-variable
#cgo linux LDFLAGS: -ldl
#cgo windows LDFLAGS: -Wl,-Bstatic -lwinpthread -Wl,-Bdynamic
#include <stdlib.h>
#include "shim.h"

#cgo noescape ossl_conn_start
#cgo nocallback ossl_conn_start
#cgo noescape ossl_conn_handshake
#cgo nocallback ossl_conn_handshake
#cgo noescape ossl_conn_facts
#cgo nocallback ossl_conn_facts
#cgo noescape ossl_conn_read
#cgo nocallback ossl_conn_read
#cgo noescape ossl_conn_write
#cgo nocallback ossl_conn_write
#cgo noescape ossl_conn_close_notify
#cgo nocallback ossl_conn_close_notify
#cgo noescape ossl_conn_key_update
#cgo nocallback ossl_conn_key_update
#cgo noescape ossl_conn_export
#cgo nocallback ossl_conn_export
#cgo noescape ossl_conn_free
#cgo nocallback ossl_conn_free
#cgo noescape ossl_conn_open
#cgo nocallback ossl_conn_open
#cgo noescape ossl_conn_seal
#cgo nocallback ossl_conn_seal
#cgo noescape ossl_conn_update
#cgo nocallback ossl_conn_update
#cgo noescape ossl_conn_kernel_key
#cgo nocallback ossl_conn_kernel_key
#cgo noescape ossl_conn_kernel_seals
#cgo nocallback ossl_conn_kernel_seals
#cgo noescape ossl_conn_offer_session
#cgo nocallback ossl_conn_offer_session
#cgo noescape ossl_conn_forget_sessions
#cgo nocallback ossl_conn_forget_sessions
#cgo noescape ossl_ctx_set_ticket_keys
#cgo nocallback ossl_ctx_set_ticket_keys
#cgo noescape ossl_conn_refuse
#cgo nocallback ossl_conn_refuse
#cgo noescape ossl_ctx_check_cred
#cgo nocallback ossl_ctx_check_cred
#cgo noescape ossl_conn_use_cred
#cgo nocallback ossl_conn_use_cred
*/
import "C"

import (
	"encoding/binary"
	"slices"
	"strings"
	"unsafe"
)

// bytePtr returns a pointer that C may read len(b) bytes from; b may be empty.
func bytePtr(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b))) }

func stepOf(s C.ossl_step) Step {
	return Step{
		Status:    Status(s.status),
		Pending:   s.pending != 0,
		TakenOver: s.taken_over != 0,
		Consumed:  int(s.consumed),
		Produced:  int(s.produced),
		N:         int(s.n),
		Records:   int(s.records),
	}
}

// borrowed returns C's bytes as a slice that is valid until the connection's next call.
func borrowed(p *C.uint8_t, n C.size_t) []byte {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n))
}

// HeapInUse returns the number of bytes in use on the C heap, or 0 if the C library doesn't report
// it.
func HeapInUse() uint64 { return uint64(C.ossl_heap_in_use()) }

// ask reports for each group, and then for each signature algorithm, whether the library has it or, in
// FIPS mode, the module. There is at least one.
func ask(groups, signatures []string, fips bool) ([]bool, error) {
	names := slices.Concat(groups, signatures)
	s := C.CString(strings.Join(names, "\x00"))
	defer C.free(unsafe.Pointer(s))
	answers := make([]C.uint8_t, len(names))
	var errs [errorSlots]C.ulong
	if C.ossl_has(s, C.size_t(len(groups)), C.size_t(len(signatures)), C.int(flag(fips)), &answers[0], &errs[0]) != 1 {
		return nil, &Error{Op: "list groups and signature algorithms", Codes: codes(&errs)}
	}
	has := make([]bool, len(names))
	for i, answer := range answers {
		has[i] = answer == 1
	}
	return has, nil
}

// cString returns s for C, nil if empty. It is freed with free.
func cString(s string) *C.char {
	if s == "" {
		return nil
	}
	return C.CString(s)
}

func flag(on bool) C.uint8_t {
	if on {
		return 1
	}
	return 0
}

func copyBytes(to []C.uint8_t, from []byte) int {
	n := min(len(to), len(from))
	for i := range n {
		to[i] = C.uint8_t(from[i])
	}
	return n
}

// sized splits a part that follows its length off the front of b. The shim made it so.
func sized(b []byte) (part, rest []byte) {
	n := int(binary.BigEndian.Uint32(b))
	return b[4 : 4+n : 4+n], b[4+n:]
}

// PausesHoldThreads reports whether a handshake that has asked Go holds a thread until it has the
// answer. It does except on Linux with amd64 or arm64.
func PausesHoldThreads() bool { return C.ossl_pauses_hold_threads() == 1 }

// Occupied reports whether this thread's signatures and secrets are attributed to a handshake, for
// tests.
func Occupied() bool { return C.ossl_occupied() == 1 }
