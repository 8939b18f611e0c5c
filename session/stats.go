package session

// Stats is a snapshot of the counts and sizes of a [Memory].
type Stats struct {
	Hits        uint64 // Gets that found a session
	Misses      uint64 // Gets that found none, or one that had expired
	Puts        uint64 // sessions kept
	Refused     uint64 // sessions that were too large to keep
	Evictions   uint64 // unexpired sessions dropped for lack of room
	Expirations uint64 // sessions dropped because they had expired

	Entries   int   // sessions held now, including expired ones that are not wiped yet
	Bytes     int64 // memory for those, including a share of the index
	Allocated int64 // memory that the cache has allocated, and keeps; never more than its bound
}

func (s *Stats) add(t Stats) {
	s.Hits += t.Hits
	s.Misses += t.Misses
	s.Puts += t.Puts
	s.Refused += t.Refused
	s.Evictions += t.Evictions
	s.Expirations += t.Expirations
	s.Entries += t.Entries
	s.Bytes += t.Bytes
	s.Allocated += t.Allocated
}
