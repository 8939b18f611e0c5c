package session

import (
	"sync"
	"unsafe"
)

// A shard is a part of a Memory. Entries and blocks of sessions are numbered. They lie in chunks
// that hold no pointers, are allocated when needed, and never move: so no copies remain in memory
// that was outgrown, and the garbage collector has no pointers to follow.
//
// An entry is in three orders: a chain of the index (by hash), the list of use (a ring through next
// and prev), and the heap of expiry. The field chain also links free entries, next also links free
// blocks.
type shard struct {
	mu sync.Mutex

	entries slab[entry]
	blocks  slab[block]
	index   []int32 // the first entry of each chain
	heap    []int32 // the entry that expires first is at its top: children of i are at 2i+1 and 2i+2
	used    int32   // the most recently used entry; the one before it is the least recently used

	freeEntries, freeBlocks int32
	usedBlocks              int

	counts Stats // the counters only; method stats fills in the sizes

	_ [64]byte // keeps the next shard's lock out of this cache line
}

type entry struct {
	id         [MaxIDLen]byte
	expires    int64  // in nanoseconds, by Memory.onward
	tag        uint32 // of the ID's hash
	chain      int32
	prev, next int32
	pos        int32 // in the heap
	block      int32 // the first of the session's blocks
	size       int32 // of the session
	idLen      int32
}

const blockData = 60

// A block is a cache line of a session.
type block struct {
	next int32
	data [blockData]byte
}

const (
	entrySize = int64(unsafe.Sizeof(entry{})) + 4 + 4 // with its share of index and heap
	blockSize = int64(unsafe.Sizeof(block{}))
)

// none is the number of no entry and no block.
const none = int32(-1)

// wipesAtOnce bounds how many expired sessions an operation wipes, besides those whose room it
// needs.
const wipesAtOnce = 16

func (s *shard) init(entries, blocks int) {
	s.entries.init(entries)
	s.blocks.init(blocks)
	s.index = make([]int32, entries)
	s.heap = make([]int32, 0, entries)
	for i := range s.index {
		s.index[i] = none
	}
	s.used, s.freeEntries, s.freeBlocks = none, none, none
}

func (s *shard) put(id []byte, tag uint32, session []byte, expires, now int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	if i := s.find(id, tag); i != none {
		s.drop(i)
	}
	need := (len(session) + blockData - 1) / blockData
	if need > s.blocks.max {
		s.counts.Refused++
		return ErrTooLarge
	}
	if expires <= now {
		return nil
	}
	for len(s.heap) == s.entries.max || s.usedBlocks+need > s.blocks.max {
		if first := s.heap[0]; s.entries.at(first).expires <= now {
			s.counts.Expirations++
			s.drop(first)
		} else {
			s.counts.Evictions++
			s.drop(s.entries.at(s.used).prev)
		}
	}
	i := s.newEntry()
	e := s.entries.at(i)
	e.idLen = int32(copy(e.id[:], id))
	e.expires, e.tag, e.size, e.block = expires, tag, int32(len(session)), none
	for last := &e.block; len(session) > 0; {
		*last = s.newBlock()
		b := s.blocks.at(*last)
		b.next = none
		session = session[copy(b.data[:], session):]
		last = &b.next
	}
	head := &s.index[s.bucket(tag)]
	e.chain, *head = *head, i
	s.link(i)
	s.heapPush(i)
	s.counts.Puts++
	return nil
}

func (s *shard) get(id []byte, tag uint32, take bool, now int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	i := s.find(id, tag)
	if i != none && s.entries.at(i).expires <= now {
		s.counts.Expirations++
		s.drop(i)
		i = none
	}
	if i == none {
		s.counts.Misses++
		return nil
	}
	s.counts.Hits++
	e := s.entries.at(i)
	session := make([]byte, e.size)
	rest := session
	for at := e.block; at != none; {
		b := s.blocks.at(at)
		rest = rest[copy(rest, b.data[:]):]
		at = b.next
	}
	if take {
		s.drop(i)
	} else if s.used != i {
		s.unlink(i)
		s.link(i)
	}
	return session
}

func (s *shard) remove(id []byte, tag uint32, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	if i := s.find(id, tag); i != none {
		s.drop(i)
	}
}

func (s *shard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.heap) > 0 {
		s.drop(s.heap[len(s.heap)-1])
	}
}

func (s *shard) stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.counts
	t.Entries = len(s.heap)
	t.Bytes = int64(len(s.heap))*entrySize + int64(s.usedBlocks)*blockSize
	t.Allocated = int64(len(s.index)+cap(s.heap))*4 + s.entries.bytes() + s.blocks.bytes()
	return t
}

// expire wipes some of the expired sessions.
func (s *shard) expire(now int64) {
	for n := 0; n < wipesAtOnce && len(s.heap) > 0 && s.entries.at(s.heap[0]).expires <= now; n++ {
		s.counts.Expirations++
		s.drop(s.heap[0])
	}
}

// bucket returns the place of a hash in the index. It is proportional to the hash.
func (s *shard) bucket(tag uint32) int { return int(uint64(tag) * uint64(len(s.index)) >> 32) }

func (s *shard) find(id []byte, tag uint32) int32 {
	for i := s.index[s.bucket(tag)]; i != none; {
		e := s.entries.at(i)
		if e.tag == tag && string(e.id[:e.idLen]) == string(id) {
			return i
		}
		i = e.chain
	}
	return none
}

// drop removes an entry from all orders, and wipes it and its session.
func (s *shard) drop(i int32) {
	e := s.entries.at(i)
	at := &s.index[s.bucket(e.tag)]
	for *at != i {
		at = &s.entries.at(*at).chain
	}
	*at = e.chain
	s.unlink(i)
	s.heapRemove(int(e.pos))
	for at := e.block; at != none; {
		b := s.blocks.at(at)
		next := b.next
		*b = block{next: s.freeBlocks}
		s.freeBlocks, at = at, next
		s.usedBlocks--
	}
	*e = entry{chain: s.freeEntries}
	s.freeEntries = i
}

// link makes an entry the most recently used one.
func (s *shard) link(i int32) {
	e := s.entries.at(i)
	if s.used == none {
		e.prev, e.next = i, i
	} else {
		last := s.entries.at(s.used)
		e.prev, e.next = last.prev, s.used
		s.entries.at(last.prev).next = i
		last.prev = i
	}
	s.used = i
}

func (s *shard) unlink(i int32) {
	e := s.entries.at(i)
	s.entries.at(e.prev).next = e.next
	s.entries.at(e.next).prev = e.prev
	switch {
	case e.next == i:
		s.used = none
	case s.used == i:
		s.used = e.next
	}
}

func (s *shard) newEntry() int32 {
	if i := s.freeEntries; i != none {
		s.freeEntries = s.entries.at(i).chain
		return i
	}
	return s.entries.take()
}

func (s *shard) newBlock() int32 {
	s.usedBlocks++
	if i := s.freeBlocks; i != none {
		s.freeBlocks = s.blocks.at(i).next
		return i
	}
	return s.blocks.take()
}
