// Package netio reads ciphertext from network connections into pooled buffers, and holds no buffer
// while it waits for a socket. It also answers, without waiting, whether the peer of a socket is
// still there.
package netio

import (
	"sync"

	"github.com/ossl-go/ossl/internal/record"
)

const (
	// RecordsAtOnce is the number of records of the largest size that a buffer of Bulk holds.
	RecordsAtOnce = 3
	// SealOverhead bounds the bytes that sealing adds to one record: header, explicit nonce or IV,
	// tag or MAC, padding, content type.
	SealOverhead = 128

	// smallSize is enough for one record of the largest size.
	smallSize = record.HeaderLen + record.MaxCiphertext12
	// bulkSize is less than the 64 KB that Linux puts into one segment of a loopback or offloaded
	// connection. The rest of a larger write would be a segment of its own, which wakes the reader
	// up again. A reader takes the data of several writes at once. docs/PERFORMANCE.md has the
	// measurements.
	bulkSize = RecordsAtOnce*(record.MaxPlaintext+SealOverhead) + 1024
	readSize = 12 * (record.MaxPlaintext + 32)
)

// The pools of buffers for ciphertext. A connection holds a buffer only while there is something in
// it, so an idle connection has none.
var (
	Small = newPool(smallSize) // one record of the largest size
	Bulk  = newPool(bulkSize)  // the records of one large write
	reads = newPool(readSize)  // the data of several writes
)

// A Pool hands out buffers of one size.
type Pool struct{ pool sync.Pool }

func newPool(size int) *Pool {
	p := new(Pool)
	p.pool.New = func() any { return &Buffer{Mem: make([]byte, size), pool: p} }
	return p
}

// Get returns a buffer. Its memory isn't cleared.
func (p *Pool) Get() *Buffer { return p.pool.Get().(*Buffer) }

// A Buffer is memory from a pool.
type Buffer struct {
	Mem  []byte
	pool *Pool // nil if the memory isn't from a pool
}

// Put returns the buffer to its pool. Ciphertext needs no clearing.
func (b *Buffer) Put() {
	if b.pool != nil {
		b.pool.pool.Put(b)
	}
}
