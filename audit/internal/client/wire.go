package client

// Extensions that this package reads or writes itself.
const (
	extStatus         = 5
	extALPN           = 16
	extSCT            = 18
	extCompress       = 27
	extEarlyData      = 42
	pskDHE       byte = 1
)

// A reader parses bytes of the server. After an error, ok is false and every result is zero.
type reader struct {
	b  []byte
	ok bool
}

func newReader(b []byte) *reader { return &reader{b, true} }

func (r *reader) bytes(n int) []byte {
	if !r.ok || n > len(r.b) {
		r.b, r.ok = nil, false
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// uint reads an integer of n bytes.
func (r *reader) uint(n int) (v int) {
	for _, b := range r.bytes(n) {
		v = v<<8 | int(b)
	}
	return v
}

// vector reads a vector whose length has n bytes.
func (r *reader) vector(n int) []byte { return r.bytes(r.uint(n)) }

// end reports whether everything was read, without an error.
func (r *reader) end() bool { return r.ok && len(r.b) == 0 }

// put appends an integer of n bytes.
func put(b []byte, n, v int) []byte {
	for n--; n >= 0; n-- {
		b = append(b, byte(v>>(8*n)))
	}
	return b
}

// putVector appends a vector whose length has n bytes.
func putVector(b []byte, n int, v []byte) []byte { return append(put(b, n, len(v)), v...) }
