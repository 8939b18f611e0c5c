package redisstore

import "sync/atomic"

// Stats is a snapshot of the counts of a [Store].
type Stats struct {
	Hits        uint64 // Gets that found a session
	Misses      uint64 // Gets for which the store, or the queue, had no session
	Errors      uint64 // Gets that failed, including the following kinds
	Timeouts    uint64 // Gets that timed out
	Unavailable uint64 // Gets that were not made: the breaker was open, or too many were under way
	Forged      uint64 // values that were found but didn't open

	Puts         uint64 // sessions that the store has confirmed
	PutsDropped  uint64 // sessions that were dropped: the queue was full, the breaker open, or the store failed
	Removes      uint64 // removals that the store has confirmed
	RemovesLost  uint64 // removals that were given up: the queue was full, or the store refused
	Queued       int    // writes that wait or are under way
	Breaker      string // "closed" (calls are made), "open" (none is made), "half-open" (one call probes)
	BreakerOpens uint64 // times that it has opened
}

type counters struct {
	hits, misses, errors, timeouts, unavailable, forged atomic.Uint64
	puts, putsDropped, removes, removesLost             atomic.Uint64
}
