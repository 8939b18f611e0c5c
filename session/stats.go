package session

// Stats is a snapshot of what a [Memory] has done and holds.
type Stats struct {
	Hits        uint64 // Gets that found a session
	Misses      uint64 // Gets that found none, or one that had expired
	Puts        uint64 // sessions kept
	Refused     uint64 // sessions that were not kept, being too large
	Evictions   uint64 // sessions dropped for want of room before they expired
	Expirations uint64 // sessions dropped because they had expired

	Entries   int   // sessions held now; among them may be some that have expired and are not wiped yet
	Bytes     int64 // memory that those take, a share of the index included
	Allocated int64 // memory that the cache has allocated, which it keeps; never more than its bound
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
