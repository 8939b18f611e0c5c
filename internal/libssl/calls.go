package libssl

import (
	"encoding/binary"
	"slices"
	"strings"
	"unsafe"
)

// bytePtr returns a pointer that C may read len(b) bytes from; b may be empty.
func bytePtr(b []byte) *c_uint8_t { return (*c_uint8_t)(unsafe.Pointer(unsafe.SliceData(b))) }

func stepOf(s c_ossl_step) Step {
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
func borrowed(p *c_uint8_t, n c_size_t) []byte {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n))
}

// HeapInUse returns the number of bytes in use on the C heap, or 0 if the C library doesn't report
// it.
func HeapInUse() uint64 { return uint64(c_ossl_heap_in_use()) }

// CanTrimHeap reports whether TrimHeap does something.
func CanTrimHeap() bool { return c_ossl_heap_trim(0) == 1 }

// TrimHeap gives free memory on the C heap back to the system, if the C library is glibc.
func TrimHeap() { c_ossl_heap_trim(1) }

// ask reports for each group, and then for each signature algorithm, whether the library has it or, in
// FIPS mode, the module. There is at least one.
func ask(groups, signatures []string, fips bool) ([]bool, error) {
	names := slices.Concat(groups, signatures)
	s := c_CString(strings.Join(names, "\x00"))
	defer c_free(unsafe.Pointer(s))
	answers := make([]c_uint8_t, len(names))
	var errs [errorSlots]c_ulong
	if c_ossl_has(s, c_size_t(len(groups)), c_size_t(len(signatures)), c_int(flag(fips)), &answers[0], &errs[0]) != 1 {
		return nil, &Error{Op: "list groups and signature algorithms", Codes: codes(&errs)}
	}
	has := make([]bool, len(names))
	for i, answer := range answers {
		has[i] = answer == 1
	}
	return has, nil
}

// cString returns s for C, nil if empty. It is freed with free.
func cString(s string) *c_char {
	if s == "" {
		return nil
	}
	return c_CString(s)
}

func flag(on bool) c_uint8_t {
	if on {
		return 1
	}
	return 0
}

func copyBytes(to []c_uint8_t, from []byte) int {
	n := min(len(to), len(from))
	for i := range n {
		to[i] = c_uint8_t(from[i])
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
func PausesHoldThreads() bool { return c_ossl_pauses_hold_threads() == 1 }

// KeepStacks sets the number of stacks that are kept for handshakes which may pause. It is at least 64.
func KeepStacks(n int) { c_ossl_keep_stacks(c_size_t(n)) }

// Occupied reports whether this thread's signatures and secrets are attributed to a handshake, for
// tests.
func Occupied() bool { return c_ossl_occupied() == 1 }
