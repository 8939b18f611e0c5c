package session

import "time"

// ParseTicketKeyLines parses HAProxy's file.
var ParseTicketKeyLines = parseTicketKeyLines

// SetClock makes now the clock of a ring that rotates.
func (r *Ring) SetClock(now func() time.Time) { r.now = now }

// SealAt is Seal with a clock.
func SealAt(inner Cache, s *Sealer, now func() time.Time) Cache { return &sealedCache{inner, s, now} }

// Scan calls see with every chunk of bytes of a cache's entries and blocks.
func (m *Memory) Scan(see func(id []byte), data func([]byte)) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for j := range s.entries.taken {
			see(s.entries.at(int32(j)).id[:])
		}
		for j := range s.blocks.taken {
			data(s.blocks.at(int32(j)).data[:])
		}
		s.mu.Unlock()
	}
}

// Bound returns the memory that a cache may allocate.
func (m *Memory) Bound() (sum int64) {
	for i := range m.shards {
		s := &m.shards[i]
		sum += int64(s.entries.max)*entrySize + int64(s.blocks.max)*blockSize
	}
	return sum
}

// Check returns a description of the first inconsistency in the orders of a cache's entries.
func (m *Memory) Check() (wrong []string) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		wrong = append(wrong, s.check()...)
		s.mu.Unlock()
	}
	return wrong
}

func (s *shard) check() (wrong []string) {
	fail := func(bad bool, what string) {
		if bad {
			wrong = append(wrong, what)
		}
	}
	chained, blocks := 0, 0
	for b, i := range s.index {
		for ; i != none; i = s.entries.at(i).chain {
			e := s.entries.at(i)
			chained++
			fail(s.bucket(e.tag) != b, "an entry is in the chain of another hash")
			fail(int(e.pos) >= len(s.heap) || s.heap[e.pos] != i, "an entry is not at its place in the heap")
			n := 0
			for at := e.block; at != none; at = s.blocks.at(at).next {
				n++
			}
			fail(n != (int(e.size)+blockData-1)/blockData, "a session has more or fewer blocks than it fills")
			blocks += n
		}
	}
	fail(chained != len(s.heap), "chains and heap differ")
	fail(blocks != s.usedBlocks, "blocks are miscounted")
	for pos := 1; pos < len(s.heap); pos++ {
		fail(s.entries.at(s.heap[(pos-1)/2]).expires > s.entries.at(s.heap[pos]).expires, "the heap is out of order")
	}
	listed := 0
	if s.used != none {
		for i := s.used; ; {
			e := s.entries.at(i)
			listed++
			fail(s.entries.at(e.next).prev != i, "the list of use is torn")
			if i = e.next; i == s.used || listed > len(s.heap) {
				break
			}
		}
	}
	fail(listed != len(s.heap), "list of use and heap differ")
	free := 0
	for i := s.freeBlocks; i != none; i = s.blocks.at(i).next {
		free++
	}
	fail(free+s.usedBlocks != s.blocks.taken, "blocks are lost")
	free = 0
	for i := s.freeEntries; i != none; i = s.entries.at(i).chain {
		free++
	}
	fail(free+len(s.heap) != s.entries.taken, "entries are lost")
	return wrong
}
