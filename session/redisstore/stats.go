package redisstore

import "sync/atomic"

// Stats is a snapshot of what a [Store] has done.
type Stats struct {
	Hits        uint64 // Gets that found something
	Misses      uint64 // Gets that the store, or the queue, answered with nothing
	Errors      uint64 // Gets that failed, those below among them
	Timeouts    uint64 // Gets that took too long
	Unavailable uint64 // Gets that were not made: the breaker was open, or too many were under way
	Forged      uint64 // what was found and didn't open

	Puts         uint64 // sessions that the store has confirmed
	PutsDropped  uint64 // sessions that it has not: the queue was full, the breaker open, or the store failed
	Removes      uint64 // removals that the store has confirmed
	RemovesLost  uint64 // removals that were given up: the queue was full, or the store refused
	Queued       int    // what waits to be written or is being written
	Breaker      string // "closed" (calls are made), "open" (none is), "half-open" (one probes)
	BreakerOpens uint64 // how often it has opened
}

type counters struct {
	hits, misses, errors, timeouts, unavailable, forged atomic.Uint64
	puts, putsDropped, removes, removesLost             atomic.Uint64
}
