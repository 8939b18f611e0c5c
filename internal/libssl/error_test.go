//go:build cgo || ossl_nocgo

package libssl

import (
	"slices"
	"syscall"
	"testing"
)

// TestErrorKinds packs codes as the loaded version does: ERR_PACK(3).
func TestErrorKinds(t *testing.T) {
	if _, err := Load(""); err != nil {
		t.Fatal(err)
	}
	shift, system, memory := 24, uint64(2<<24), 65
	if AtLeast(Version3_0) {
		shift, system, memory = 23, 1<<31, 0xc0100
	}
	pack := func(library, reason int) uint64 { return uint64(library)<<shift | uint64(reason) }
	const ssl, store, other = 20, 44, 13
	noFile := system | uint64(syscall.ENOENT)
	for _, c := range []struct {
		name            string
		code            uint64
		version, length bool
		errno           syscall.Errno
		dropped         bool
	}{
		{"none", 0, false, false, 0, false},
		{"version", pack(ssl, 267), true, false, 0, false},
		{"packet length", pack(ssl, 198), false, true, 0, false},
		{"encrypted length", pack(ssl, 150), false, true, 0, false},
		{"another reason", pack(ssl, 100), false, false, 0, false},
		{"another library", pack(other, 267), false, false, 0, false},
		{"system", noFile, false, false, syscall.ENOENT, true},
		{"no memory", pack(ssl, memory), false, false, syscall.ENOMEM, false},
		{"no memory for the system", system | uint64(syscall.ENOMEM), false, false, syscall.ENOMEM, false},
		{"no scheme", pack(store, 105), false, false, 0, true},
		{"of the store", pack(store, 111), false, false, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := pack(other, 1)
			e := &Error{Op: "op", Codes: []uint64{first, c.code}}
			if e.VersionRefused() != c.version || e.LengthRefused() != c.length || e.Errno() != c.errno {
				t.Errorf("version %v, length %v, errno %v", e.VersionRefused(), e.LengthRefused(), e.Errno())
			}
			want := []uint64{first, c.code}
			if c.dropped {
				want = want[:1]
			}
			if left := e.WithoutFileLookup(); left.Op != "op" || !slices.Equal(left.Codes, want) {
				t.Errorf("WithoutFileLookup leaves %x of %x", left.Codes, e.Codes)
			}
		})
	}
}
