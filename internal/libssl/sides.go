package libssl

import "unsafe"

// The sides of a connection that was taken over, by ossl_conn_free's numbers.
const (
	readSide  = 1
	writeSide = 2
)

// Sides returns the two sides of a connection that was taken over from libssl: after the Done of a
// handshake whose Facts report it, or after a Read that took over. They are independent of each
// other, and may be used at the same time. Conn itself must not be used any more, except for
// Export, Free and Calls.
func (c *Conn) Sides() (*ReadSide, *WriteSide) {
	traffic := (*c_ossl_traffic)(unsafe.Pointer(c.p))
	c.read.p, c.write.p = traffic, traffic
	c.write.conn = c
	c.read.conn = c
	return &c.read, &c.write
}

// A ReadSide opens the records of a connection that was taken over.
type ReadSide struct {
	p     *c_ossl_traffic
	conn  *Conn
	calls uint64
}

// Open opens records in place, and application data into dst. It stores its result in o, which
// saves a copy for each record.
func (s *ReadSide) Open(o *Opened, in, dst []byte) {
	s.calls++
	var opened c_ossl_opened
	c_ossl_conn_open(s.p, bytePtr(in), c_size_t(len(in)), bytePtr(dst), c_size_t(len(dst)), &opened)
	o.Status, o.Alert, o.Type = Status(opened.status), uint8(opened.alert), uint8(opened._type)
	o.Consumed, o.N = int(opened.consumed), int(opened.n)
	if o.At, o.Len = 0, 0; o.Status == Record {
		o.At, o.Len = int(opened.at), int(opened.len)
	}
}

// Update advances to the next key. It reports whether that worked; if not, the side can't be used
// any more.
func (s *ReadSide) Update() bool {
	s.calls++
	return c_ossl_conn_update(s.p, 0) == 1
}

// Free frees the side, which must not be used again.
func (s *ReadSide) Free() { s.conn.free(readSide, s.calls, false, nil) }

// Skip skips sequence numbers, up to seq, so that tests reach their limits. It never goes back.
func (s *ReadSide) Skip(seq uint64) bool {
	return c_ossl_conn_skip(s.conn.p, 0, c_uint64_t(seq)) == 1
}

// A WriteSide seals the records of a connection that was taken over.
type WriteSide struct {
	p     *c_ossl_traffic
	conn  *Conn
	calls uint64
}

// Seal seals src into out as records of a content type. With payload > 0 the i-th record holds at
// most payload*(first+i+1) bytes, until grown bytes have been produced. It stores its result in
// step, which saves a copy for each record.
func (s *WriteSide) Seal(step *Step, contentType uint8, src, out []byte, payload, first, grown int) {
	s.calls++
	var sealed c_ossl_step
	c_ossl_conn_seal(s.p, c_uint8_t(contentType), bytePtr(src), c_size_t(len(src)),
		bytePtr(out), c_size_t(len(out)), c_size_t(payload), c_size_t(first), c_size_t(max(0, grown)), &sealed)
	step.Status, step.Pending, step.TakenOver = Status(sealed.status), false, false
	step.Consumed, step.Produced, step.N, step.Records = 0, int(sealed.produced), int(sealed.n), int(sealed.records)
}

// Update advances to the next key. It reports whether that worked; if not, the side can't be used
// any more.
func (s *WriteSide) Update() bool {
	s.calls++
	return c_ossl_conn_update(s.p, 1) == 1
}

// A KernelKey has the layout of the C struct, so that no other copy of a key is left.
var _ = [1]struct{}{}[unsafe.Sizeof(KernelKey{})-c_sizeof_ossl_kernel_key]
var _ = [1]struct{}{}[unsafe.Sizeof(Secrets{})-c_sizeof_ossl_secrets]
var _ = [1]struct{}{}[RecordsPerKey-c_OSSL_RECORDS_PER_KEY]
var _ = [1]struct{}{}[MissFinished-c_OSSL_MISS_FINISHED]

// KernelKey fills key with the values that the kernel needs to seal the next records, and reports
// whether there is such a key. If the kernel takes it, KernelSeals must be called before anything
// else; if not, nothing has changed.
func (s *WriteSide) KernelKey(key *KernelKey) bool {
	s.calls++
	return c_ossl_conn_kernel_key(s.p, (*c_ossl_kernel_key)(unsafe.Pointer(key))) == 1
}

// KernelSeals stops sealing here. Update still advances to the next key, for KernelKey.
func (s *WriteSide) KernelSeals() {
	s.calls++
	c_ossl_conn_kernel_seals(s.p)
}

// Free frees the side, sealing close_notify into out first if notify is set. The side must not be
// used again.
func (s *WriteSide) Free(notify bool, out []byte) Step {
	return s.conn.free(writeSide, s.conn.crossings+s.calls, notify, out)
}

// Skip skips sequence numbers, up to seq, so that tests reach their limits. It never goes back.
func (s *WriteSide) Skip(seq uint64) bool {
	return c_ossl_conn_skip(s.conn.p, 1, c_uint64_t(seq)) == 1
}

// Secrets fills s with the connection's state, and reports whether another process can go on from it. The
// connection was taken over, and neither of its sides is in use. TLS 1.2 needs Extended Master Secret.
func (c *Conn) Secrets(s *Secrets) bool {
	c.crossings++
	return c_ossl_conn_secrets(c.p, (*c_ossl_secrets)(unsafe.Pointer(s))) == 1
}

// OfSecrets makes an established connection from its state, as if it had been taken over from libssl.
func (c *Context) OfSecrets(s *Secrets) (*Conn, error) {
	ssl := c.hold()
	if ssl == nil {
		return nil, errContextClosed
	}
	defer ssl.release()
	var errs [errorSlots]c_ulong
	p := c_ossl_conn_of_secrets(ssl.p, (*c_ossl_secrets)(unsafe.Pointer(s)), &errs[0])
	if p == nil {
		return nil, &Error{Op: "go on with a connection", Codes: codes(&errs)}
	}
	return &Conn{p: p, crossings: 1, ctx: c}, nil
}
