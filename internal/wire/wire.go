// Package wire reads the presentation language of TLS: RFC 8446, section 3.
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

// Vector takes the bytes after their length, which is a number of size bytes, at most 3.
func (r *Reader) Vector(size int) []byte { return r.Bytes(r.Number(size)) }

// List takes a vector as a Reader of its own, which has failed if r has.
func (r *Reader) List(size int) Reader { return Reader{r.Vector(size), r.Failed} }

// Done reports whether everything was read, and no part was missing.
func (r *Reader) Done() bool { return !r.Failed && len(r.Rest) == 0 }
