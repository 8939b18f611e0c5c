package tlstest

import (
	"testing"
	"unsafe"
)

// Within fails the test unless part lies inside of whole: a parser must return parts of its input.
func Within(t *testing.T, part, whole []byte) {
	t.Helper()
	if len(part) == 0 {
		return
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	p := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	if p < start || p+uintptr(len(part)) > start+uintptr(len(whole)) {
		t.Fatal("a part lies outside of the input")
	}
}
