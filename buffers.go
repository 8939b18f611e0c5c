package ossl

import "sync"

// Buffers for ciphertext come from pools and are held only while they hold something, so an idle
// connection has none.

const (
	// smallBuffer takes one record of the largest size: 16384 bytes of plaintext, 2048 of expansion
	// at most (RFC 5246, 6.2.3), header.
	smallBuffer = 16384 + 2048 + recordHeaderLen
	// writeBuffer and readBuffer are for bulk. What is written at once is kept below the 64 KB that
	// Linux puts into one segment of a loopback or offloaded connection: with more, the rest
	// travels alone, and the reader wakes up twice. The reader takes what several writes have
	// brought. docs/PERFORMANCE.md has the measurements.
	writeBuffer = recordsAtOnce*(16384+sealOverhead) + 1024
	readBuffer  = 12 * (16384 + 32)
	// recordsAtOnce is how many records of the largest size one crossing seals.
	recordsAtOnce = 3
	// sealOverhead bounds what sealing adds to one record: header, explicit nonce or IV, tag or
	// MAC, padding, content type.
	sealOverhead = 128
)

// A buffer is pooled memory with some bytes of it in use.
type buffer struct {
	mem  []byte
	pool *sync.Pool // nil if it is no pool's
}

var (
	smallBuffers = bufferPool(smallBuffer)
	writeBuffers = bufferPool(writeBuffer)
	readBuffers  = bufferPool(readBuffer)
)

func bufferPool(size int) *sync.Pool {
	pool := new(sync.Pool)
	pool.New = func() any { return &buffer{mem: make([]byte, size), pool: pool} }
	return pool
}

func getBuffer(pool *sync.Pool) *buffer { return pool.Get().(*buffer) }

// put gives the buffer back. It held ciphertext, which needs no clearing.
func (b *buffer) put() {
	if b.pool != nil {
		b.pool.Put(b)
	}
}
