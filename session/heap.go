package session

// The heap orders entries by expiry. Each entry knows its place in it, so that any can be removed.

func (s *shard) heapPush(i int32) {
	s.heap = append(s.heap, i) // within its capacity
	s.heapUp(len(s.heap)-1, i)
}

func (s *shard) heapRemove(pos int) {
	last := len(s.heap) - 1
	moved := s.heap[last]
	s.heap = s.heap[:last]
	if pos == last {
		return
	}
	if s.heapUp(pos, moved) == pos {
		s.heapDown(pos, moved)
	}
}

// heapUp moves an entry to its place, at pos or above, and returns that place.
func (s *shard) heapUp(pos int, i int32) int {
	e := s.entries.at(i)
	for pos > 0 {
		parent := (pos - 1) / 2
		p := s.entries.at(s.heap[parent])
		if p.expires <= e.expires {
			break
		}
		s.heap[pos], p.pos = s.heap[parent], int32(pos)
		pos = parent
	}
	s.heap[pos], e.pos = i, int32(pos)
	return pos
}

// heapDown moves an entry to its place, at pos or below.
func (s *shard) heapDown(pos int, i int32) {
	e := s.entries.at(i)
	for {
		child := 2*pos + 1
		if child >= len(s.heap) {
			break
		}
		c := s.entries.at(s.heap[child])
		if child+1 < len(s.heap) {
			if d := s.entries.at(s.heap[child+1]); d.expires < c.expires {
				child, c = child+1, d
			}
		}
		if c.expires >= e.expires {
			break
		}
		s.heap[pos], c.pos = s.heap[child], int32(pos)
		pos = child
	}
	s.heap[pos], e.pos = i, int32(pos)
}
