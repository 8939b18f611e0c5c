//go:build !cgo

package libssl

import (
	"os"
	"unsafe"
)

// linked is an object: the C code of a build without cgo, which nocgo/build makes and nocgo/link links.
type linked struct {
	table      *[functions]uintptr
	functions  uint64
	sources    *c_char // their hash
	topOfStack uintptr
	crosscall2 uintptr
	passphrase uintptr
}

var (
	table      *[functions]uintptr // nil if there is no object that can be used
	objectHash string
	linkFault  = "this program was built without cgo, which is needed to load a C library: build it " +
		"with CGO_ENABLED=1 and a C compiler, or import github.com/ossl-go/ossl/nocgo (Linux, amd64 and arm64)"
)

// LinkObject links the object at an address, whose hash is given.
func LinkObject(at, topOfStack, crosscall2 uintptr, hash string) {
	o := *(**linked)(unsafe.Pointer(&at))
	if o.functions != functions || c_GoString(o.sources) != sourceHash {
		linkFault = "the object of ossl/nocgo is not of this version of the module ossl: require the same version of both modules"
		return
	}
	answer := passphraseOf
	o.topOfStack, o.crosscall2, o.passphrase = topOfStack, crosscall2, **(**uintptr)(unsafe.Pointer(&answer))
	table, objectHash, linkFault = o.table, hash, ""
}

// RefuseObject makes the object unused, and the reason part of the error.
func RefuseObject(reason string) { table, objectHash, linkFault = nil, "", reason }

// passphraseOf is called by the object's osslGoPassphrase.
func passphraseOf(a *struct {
	handle  c_uintptr_t
	buf     *c_uint8_t
	size, n c_int32_t
}) {
	a.n = passphraseFor(a.handle, a.buf, a.size)
}

//go:linkname cgocall runtime.cgocall
//go:noescape
func cgocall(fn, arg unsafe.Pointer) int32

// call calls one of the object's functions with its frame. Without an object it does nothing, so that the
// result is zero.
func call(fn int, frame unsafe.Pointer) {
	if table != nil {
		cgocall(*(*unsafe.Pointer)(unsafe.Pointer(&table[fn])), frame)
	}
}

// Assigned if alwaysFalse is true. So the compiler puts the arguments of functions that may call Go on the heap.
var (
	alwaysFalse bool
	escaped     unsafe.Pointer
)

func c_malloc(n c_size_t) unsafe.Pointer {
	if table == nil {
		return unsafe.Pointer(unsafe.SliceData(make([]byte, n)))
	}
	a := struct {
		n c_size_t
		r unsafe.Pointer
	}{n: n}
	call(0, unsafe.Pointer(&a))
	if a.r == nil {
		println("fatal error: ossl: C has no memory") // as cgo does
		os.Exit(2)
	}
	return a.r
}

func c_CString(s string) *c_char {
	p := (*c_char)(c_malloc(c_size_t(len(s) + 1)))
	b := unsafe.Slice((*byte)(unsafe.Pointer(p)), len(s)+1)
	b[copy(b, s)] = 0
	return p
}

func c_CBytes(b []byte) unsafe.Pointer {
	p := c_malloc(c_size_t(len(b)))
	copy(unsafe.Slice((*byte)(p), len(b)), b)
	return p
}

func c_GoString(p *c_char) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*c_char)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(p)), n))
}

func c_GoBytes(p unsafe.Pointer, n c_int) []byte {
	return append([]byte{}, unsafe.Slice((*byte)(p), int(n))...)
}
