package ossl

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/internal/chain"
)

// An observer counts the connections of a Context, and of those that GetConfigForClient chooses. It
// calls the Context's function for events.
type observer struct {
	*counters
	events func(Event) // nil for none
	labels bool        // of profiles
}

// An observation holds the data that statistics, events and traces have about a connection. The
// handshake writes the fields that are not atomic.
type observation struct {
	observer *observer // of the Context that the connection was made with; nil if the configuration was refused
	tracer   *tracer   // of the handshake, or nil

	began, opened time.Time // of the handshake: its begin, its successful end
	resumption    Resumption
	alertSent     uint8 // that aborted the handshake, or 0

	bytesRead, bytesWritten byteCount
	ends                    atomic.Uint32 // see Conn.ended
	idle                    atomic.Bool   // see Conn.SetIdle
}

// counting returns the connection's observer, which is the process's if the configuration was
// refused.
func (w *observation) counting() *observer {
	if w.observer == nil {
		return &process
	}
	return w.observer
}

// process counts the connections whose configuration was refused, and those of Contexts that were
// collected.
var process = observer{counters: new(counters)}

// living has the counters of the Contexts that are not collected. Handshakes count for their Context
// alone: all processors would share the process's counters.
var living = struct {
	mu  sync.Mutex
	all map[*counters]struct{} // guarded by mu
}{all: make(map[*counters]struct{})}

func newObserver(events func(Event), labels bool) *observer {
	o := &observer{counters: new(counters), events: events, labels: labels}
	living.mu.Lock()
	defer living.mu.Unlock()
	living.all[o.counters] = struct{}{}
	runtime.AddCleanup(o, func(c *counters) {
		living.mu.Lock()
		defer living.mu.Unlock()
		delete(living.all, c)
		c.addTo(process.counters)
	}, o.counters)
	return o
}

// processCounters returns the sum of all counters.
func processCounters() *counters {
	sum := new(counters)
	living.mu.Lock()
	defer living.mu.Unlock()
	process.counters.addTo(sum)
	for c := range living.all {
		c.addTo(sum)
	}
	return sum
}

// openConns returns the number of open connections of the process.
func openConns() (n int64) {
	living.mu.Lock()
	defer living.mu.Unlock()
	n = process.counters.open()
	for c := range living.all {
		n += c.open()
	}
	return n
}

// counters are the numbers behind Stats.
type counters struct {
	mu         sync.Mutex
	handshakes map[HandshakeStats]uint64  // guarded by mu; in the keys Count is 0
	failures   map[FailureStats]uint64    // likewise
	broken     map[FailureStats]uint64    // likewise
	durations  map[durationKey]*histogram // guarded by mu
	sessions   SessionCacheStats          // guarded by mu
	opened     uint64                     // guarded by mu
	records    RecordStats                // guarded by mu

	chains                       chain.Counts
	revocation                   revocationCounts
	certificates, configurations cacheCounts
	read, written                atomic.Uint64
	closed                       atomic.Uint64 // never more than opened
}

// revocationCounts count verifications of peers by revocation lists.
type revocationCounts struct{ revoked, hardFails, softFails atomic.Uint64 }

// cacheCounts count for a cache whose entries are expensive to make.
type cacheCounts struct{ misses, evictions atomic.Uint64 }

func (c *cacheCounts) stats() ConversionCacheStats {
	return ConversionCacheStats{c.misses.Load(), c.evictions.Load()}
}

type durationKey struct{ server, resumed bool }

// A histogram counts durations by their buckets, the last of which has no bound.
type histogram struct {
	sum     time.Duration
	buckets [len(durationBounds) + 1]uint64
}

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(durationBounds) && d > durationBounds[i] {
		i++
	}
	h.buckets[i]++
	h.sum += d
}

func (h *histogram) stats(key durationKey) DurationStats {
	s := DurationStats{Server: key.server, Resumed: key.resumed, Sum: h.sum, Buckets: make([]DurationBucket, len(durationBounds))}
	for i, n := range h.buckets {
		s.Count += n
		if i < len(durationBounds) {
			s.Buckets[i] = DurationBucket{durationBounds[i], s.Count}
		}
	}
	return s
}

// count calls f with c locked.
func (c *counters) count(f func(c *counters)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// addTo adds the counts of c to those of sum.
func (c *counters) addTo(sum *counters) {
	sum.mu.Lock()
	defer sum.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	addMap(&sum.handshakes, c.handshakes)
	addMap(&sum.failures, c.failures)
	addMap(&sum.broken, c.broken)
	for key, h := range c.durations {
		if sum.durations == nil {
			sum.durations = make(map[durationKey]*histogram)
		}
		if sum.durations[key] == nil {
			sum.durations[key] = new(histogram)
		}
		to := sum.durations[key]
		to.sum += h.sum
		for i, n := range h.buckets {
			to.buckets[i] += n
		}
	}
	sum.sessions.add(c.sessions)
	sum.records.add(c.records)
	sum.closed.Add(c.closed.Load())
	sum.opened += c.opened
	for _, n := range []struct{ to, from *atomic.Uint64 }{
		{&sum.chains.Hits, &c.chains.Hits}, {&sum.chains.Misses, &c.chains.Misses},
		{&sum.revocation.revoked, &c.revocation.revoked}, {&sum.revocation.hardFails, &c.revocation.hardFails},
		{&sum.revocation.softFails, &c.revocation.softFails},
		{&sum.certificates.misses, &c.certificates.misses}, {&sum.certificates.evictions, &c.certificates.evictions},
		{&sum.configurations.misses, &c.configurations.misses}, {&sum.configurations.evictions, &c.configurations.evictions},
		{&sum.read, &c.read}, {&sum.written, &c.written},
	} {
		n.to.Add(n.from.Load())
	}
}

func addMap[K comparable](sum *map[K]uint64, counts map[K]uint64) {
	for key, n := range counts {
		if *sum == nil {
			*sum = make(map[K]uint64)
		}
		(*sum)[key] += n
	}
}

func (s *SessionCacheStats) add(t SessionCacheStats) {
	s.Hits += t.Hits
	s.Misses += t.Misses
	s.Errors += t.Errors
	s.Puts += t.Puts
	s.PutErrors += t.PutErrors
}

func (s *RecordStats) add(t RecordStats) {
	s.Direct += t.Direct
	s.Libssl += t.Libssl
	s.Kernel += t.Kernel
}

// open returns the number of open connections.
func (c *counters) open() (n int64) {
	c.count(func(c *counters) { n = int64(c.opened - c.closed.Load()) })
	return n
}

func (c *counters) handshake(h HandshakeStats, took time.Duration) {
	if c.handshakes == nil {
		c.handshakes = make(map[HandshakeStats]uint64)
	}
	if c.durations == nil {
		c.durations = make(map[durationKey]*histogram)
	}
	c.handshakes[h]++
	c.opened++
	memory.rose(&memory.open, int64(c.opened-c.closed.Load()))
	key := durationKey{h.Server, h.Resumption != NotResumed}
	if c.durations[key] == nil {
		c.durations[key] = new(histogram)
	}
	c.durations[key].add(took)
}

func increment(counts *map[FailureStats]uint64, f FailureStats) {
	if *counts == nil {
		*counts = make(map[FailureStats]uint64)
	}
	(*counts)[f]++
}

// unreported is the number of bytes that a connection counts by itself before it adds them to the
// counters that all connections share: a counter that several processors change costs more than a
// small Read.
const unreported = 64 << 10

// A byteCount counts the bytes of one direction of a connection.
type byteCount struct {
	total    atomic.Uint64
	reported atomic.Uint64
	closed   atomic.Bool // report each call: a Read or a Write was under way when the connection was closed
}

// add counts n bytes, and reports whether it is time to report them.
func (b *byteCount) add(n int64) bool {
	return b.total.Add(uint64(n))-b.reported.Load() >= unreported || b.closed.Load()
}

// report adds the bytes that weren't reported yet to a counter.
func (b *byteCount) report(to *atomic.Uint64) {
	for {
		before := b.reported.Load()
		total := b.total.Load()
		if total == before {
			return
		}
		if b.reported.CompareAndSwap(before, total) {
			to.Add(total - before)
			return
		}
	}
}
