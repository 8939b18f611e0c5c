package trace

// A reader takes parts from the front of a message. After a part that isn't there it has failed, and
// all others are empty.
type reader struct {
	b      []byte
	failed bool
}

// bytes takes n bytes.
func (r *reader) bytes(n int) []byte {
	if r.failed || n > len(r.b) {
		r.failed, r.b = true, nil
		return nil
	}
	part := r.b[:n]
	r.b = r.b[n:]
	return part
}

// number takes a number of size bytes.
func (r *reader) number(size int) (n int) {
	for _, b := range r.bytes(size) {
		n = n<<8 | int(b)
	}
	return n
}

// vector takes the bytes behind their length, which is a number of size bytes.
func (r *reader) vector(size int) []byte { return r.bytes(r.number(size)) }

// numbers returns the numbers of size bytes in b, and fails if some bytes are left.
func (r *reader) numbers(b []byte, size int) []int {
	part := reader{b: b}
	var list []int
	for len(part.b) > 0 {
		list = append(list, part.number(size))
	}
	r.failed = r.failed || part.failed
	return list
}
