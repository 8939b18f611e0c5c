// Package wire reads and writes the presentation language of TLS: RFC 8446, section 3. Its Reader is
// that of the core's internal/wire, which this module may not import.
package wire

// A Reader takes parts from the front of a byte string. After a part that isn't there it has failed:
// nothing is left, and all later parts are empty.
type Reader struct {
	Rest   []byte
	Failed bool
}

// Bytes takes n bytes. They share memory with Rest.
func (r *Reader) Bytes(n int) []byte {
	if r.Failed || n > len(r.Rest) {
		r.Rest, r.Failed = nil, true
		return nil
	}
	b := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return b
}

// Number takes a number of size bytes.
func (r *Reader) Number(size int) (n int) {
	for _, b := range r.Bytes(size) {
		n = n<<8 | int(b)
	}
	return n
}

// Uint8 takes a byte.
func (r *Reader) Uint8() byte { return byte(r.Number(1)) }

// Uint16 takes two bytes.
func (r *Reader) Uint16() uint16 { return uint16(r.Number(2)) }

// Vector takes the bytes after their length, which is a number of size bytes, at most 3.
func (r *Reader) Vector(size int) []byte { return r.Bytes(r.Number(size)) }

// List takes a vector as a Reader of its own, which has failed if r has.
func (r *Reader) List(size int) Reader { return Reader{r.Vector(size), r.Failed} }

// Done reports whether everything was read, and no part was missing.
func (r *Reader) Done() bool { return !r.Failed && len(r.Rest) == 0 }

// Append appends a number of size bytes.
func Append(b []byte, size, n int) []byte {
	for size--; size >= 0; size-- {
		b = append(b, byte(n>>(8*size)))
	}
	return b
}

// AppendVector appends a vector whose length is a number of size bytes.
func AppendVector(b []byte, size int, v []byte) []byte { return append(Append(b, size, len(v)), v...) }
