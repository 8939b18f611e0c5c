package session

import "unsafe"

// A slab is an array of up to max elements that is allocated in chunks as it is used, and whose
// elements never move.
type slab[T any] struct {
	chunks [][]T
	taken  int
	max    int
}

// Chunks of 1024 entries or blocks are whole pages, for which the allocator needs no rounding.
const (
	chunkBits = 10
	chunkLen  = 1 << chunkBits
)

func (s *slab[T]) init(max int) {
	s.max = max
	s.chunks = make([][]T, 0, (max+chunkLen-1)/chunkLen)
}

func (s *slab[T]) at(i int32) *T { return &s.chunks[i>>chunkBits][i&(chunkLen-1)] }

// take returns the number of an element that was never used. The caller has checked that there is
// one.
func (s *slab[T]) take() int32 {
	if s.taken == len(s.chunks)*chunkLen {
		s.chunks = append(s.chunks, make([]T, min(chunkLen, s.max-s.taken)))
	}
	s.taken++
	return int32(s.taken - 1)
}

// bytes returns the number of allocated bytes.
func (s *slab[T]) bytes() int64 {
	return int64(min(len(s.chunks)*chunkLen, s.max)) * int64(unsafe.Sizeof(*new(T)))
}
