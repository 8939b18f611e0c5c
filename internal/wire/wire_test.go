package wire_test

import (
	"slices"
	"testing"

	"github.com/ossl-go/ossl/internal/wire"
)

// TestReader reads a number, a vector and a list of a vector: whole, cut after each byte, and with a
// byte too many.
func TestReader(t *testing.T) {
	whole := []byte{1, 2, 3, 0, 2, 4, 5, 0, 0, 3, 2, 6, 7}
	read := func(b []byte) (r, list wire.Reader, parts []int) {
		r = wire.Reader{Rest: b}
		parts = append(parts, r.Number(3))
		for _, b := range r.Vector(2) {
			parts = append(parts, int(b))
		}
		list = r.List(3)
		for _, b := range list.Vector(1) {
			parts = append(parts, int(b))
		}
		return r, list, parts
	}
	r, list, parts := read(whole)
	if !r.Done() || !list.Done() || !slices.Equal(parts, []int{0x010203, 4, 5, 6, 7}) {
		t.Errorf("whole: %+v, %+v, %#x", r, list, parts)
	}
	for n := range whole {
		if r, list, _ := read(whole[:n]); !r.Failed || !list.Failed || r.Done() || list.Done() || len(r.Rest) > 0 {
			t.Errorf("%d bytes: %+v, %+v", n, r, list)
		}
	}
	if r, list, _ := read(append(whole[:len(whole):len(whole)], 8)); r.Failed || r.Done() || !list.Done() {
		t.Errorf("a byte too many: %+v, %+v", r, list)
	}
	whole[9]-- // the list's vector ends outside of the list
	if r, list, _ := read(whole); r.Failed || len(r.Rest) != 1 || !list.Failed {
		t.Errorf("a vector that is longer than its list: %+v, %+v", r, list)
	}
}

// TestReaderFailed: what follows a missing part is empty, even if it would be there.
func TestReaderFailed(t *testing.T) {
	r := wire.Reader{Rest: []byte{9, 1}}
	if v := r.Vector(1); v != nil || r.Number(1) != 0 || r.Bytes(0) != nil || !r.Failed {
		t.Errorf("%v, %+v", v, r)
	}
}

// TestReaderCapacity: to append to a part must not change what follows it.
func TestReaderCapacity(t *testing.T) {
	r := wire.Reader{Rest: []byte{1, 2}}
	if _ = append(r.Bytes(1), 9); r.Number(1) != 2 {
		t.Error("the rest has changed")
	}
}
