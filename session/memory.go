package session

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"
)

// MaxIDLen is the length of the longest ID that a [Memory] keeps: TLS session IDs have at most 32
// bytes (RFC 5246, section 7.4.1.2), and so have those that [Seal] makes.
const MaxIDLen = 32

// MaxTTL is the longest time that a session is kept by default. RFC 8446, section 4.6.1, allows no
// longer lifetime.
const MaxTTL = 7 * 24 * time.Hour

// BytesPerEntry is the memory that [NewCache] plans for a session: 76 bytes for the entry with its
// ID, 4 for the index, blocks for 240 bytes of the session on average, and an eighth for the
// allocator's rounding.
const BytesPerEntry = 400

var (
	// ErrID is returned for an ID that is empty or longer than [MaxIDLen].
	ErrID = errors.New("session: an ID has 1 to 32 bytes")

	// ErrTooLarge is returned for a session that would not fit in an otherwise empty cache.
	ErrTooLarge = errors.New("session: the session is too large for the cache")
)

// A Memory is a [Cache] in the process's memory, bounded by entries and by bytes. When it is full
// it drops expired sessions first, then the least recently used ones. It may be used by many
// goroutines and by any number of listeners.
//
// Sessions are copied in and out. Their bytes are wiped when they are taken, removed, replaced or
// dropped, and soon after they expire: each operation wipes some.
type Memory struct {
	seed   maphash.Seed // peers choose IDs, but must not be able to choose the shard
	shards []shard
	shift  int // the bits of a hash above it are the shard's number
	maxTTL time.Duration
	now    func() time.Time

	base atomic.Pointer[clockBase]
}

// A clockBase relates a Memory's time to the readings of its clocks at one moment.
type clockBase struct {
	at  time.Time
	now int64
}

// MemoryConfig bounds a [Memory]. One of Entries and Bytes must be set.
type MemoryConfig struct {
	// Entries is the maximum number of sessions. Zero means as many as fit in Bytes at
	// [BytesPerEntry] each.
	Entries int

	// Bytes bounds the memory for sessions, their IDs and the index, not counting the allocator's
	// rounding (an eighth at most). Zero means the memory that [NewCache] plans for Entries.
	Bytes int64

	// MaxTTL bounds the time that a session is kept, whatever expiry it is put with. Zero means the
	// constant MaxTTL.
	MaxTTL time.Duration

	// Shards is the number of parts of the cache, a power of two. Each part has its own lock and an
	// equal share of entries and bytes. Zero means one part for every 4096 entries, but no more
	// than 32. A part that is full drops sessions even if others have room; only a cache of one
	// part drops them strictly in the order of use.
	Shards int

	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// NewCache returns a cache of n sessions. It never holds more than n times [BytesPerEntry] bytes
// for them, and 4096 for the cache itself. TLS 1.2 sessions without client certificates have 150 to
// 200 bytes; if sessions have more than 240 bytes on average, fewer than n fit. For each entry, 4
// bytes of the index and 4 of the heap of expiry are allocated at once, the rest as the cache
// fills; no memory is ever given back. NewCache panics if n is less than 1.
func NewCache(n int) *Memory {
	m, err := NewMemory(MemoryConfig{Entries: n})
	if err != nil {
		panic(err)
	}
	return m
}

// maxEntries fits in an int32, and is more than memory has room for.
const maxEntries = 1 << 30

// NewMemory returns a cache with the bounds in c. It returns an error if they leave no room for a
// session of 180 bytes.
func NewMemory(c MemoryConfig) (*Memory, error) {
	if c.Entries < 0 || c.Bytes < 0 || c.MaxTTL < 0 || c.Shards < 0 {
		return nil, errors.New("session: a cache's bounds can't be negative")
	}
	if c.Entries == 0 {
		c.Entries = int(min(c.Bytes/BytesPerEntry, maxEntries))
	}
	if c.Entries == 0 || c.Entries > maxEntries {
		return nil, fmt.Errorf("session: a cache has 1 to %d entries, not %d", maxEntries, c.Entries)
	}
	if c.Bytes == 0 {
		c.Bytes = int64(c.Entries) * (entrySize + 4*blockSize)
	}
	if c.Shards == 0 {
		c.Shards = 1 << (bits.Len(uint(min(max(c.Entries/4096, 1), 32))) - 1)
	}
	if c.Shards&(c.Shards-1) != 0 || c.Shards > c.Entries {
		return nil, fmt.Errorf("session: %d shards: the number must be a power of two and at most the number of entries", c.Shards)
	}
	if c.MaxTTL == 0 {
		c.MaxTTL = MaxTTL
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	m := &Memory{
		seed:   maphash.MakeSeed(),
		shards: make([]shard, c.Shards),
		shift:  64 - bits.Len(uint(c.Shards-1)),
		maxTTL: c.MaxTTL,
		now:    c.Now,
	}
	start := c.Now()
	m.base.Store(&clockBase{start, start.UnixNano()})
	for i := range m.shards {
		entries := c.Entries / c.Shards
		if i < c.Entries%c.Shards {
			entries++
		}
		blocks := (c.Bytes/int64(c.Shards) - int64(entries)*entrySize) / blockSize
		if blocks < 3 {
			return nil, fmt.Errorf("session: %d bytes are too few for %d entries in %d shards", c.Bytes, c.Entries, c.Shards)
		}
		m.shards[i].init(entries, int(min(blocks, maxEntries)))
	}
	return m, nil
}

// shardOf returns the shard for an ID, and the ID's hash.
func (m *Memory) shardOf(id []byte) (*shard, uint64) {
	h := maphash.Bytes(m.seed, id)
	return &m.shards[h>>m.shift], h // a shift by 64 gives 0
}

// Put keeps a session under id until expires, and replaces the one that is there. If the session
// can't be kept, because it is too large or has expired, no session remains under id. Memory never
// waits, so contexts have no effect on it.
func (m *Memory) Put(_ context.Context, id, session []byte, expires time.Time) error {
	if len(id) == 0 || len(id) > MaxIDLen {
		return ErrID
	}
	wall := m.now()
	now := m.onward(wall)
	s, h := m.shardOf(id)
	return s.put(id, uint32(h), session, now+int64(min(expires.Sub(wall), m.maxTTL)), now)
}

// clocksApart is the difference between the advances of the two clocks that is ignored: they never
// agree exactly.
const clocksApart = time.Second

// onward returns the time for judging expiry, in nanoseconds. It follows the clock that advances
// more, so that no session lasts longer because the wall clock is set back, or because the
// monotonic clock stood still while the machine slept.
func (m *Memory) onward(t time.Time) int64 {
	for {
		base := m.base.Load()
		wall, monotonic := t.Round(0).Sub(base.at.Round(0)), t.Sub(base.at)
		now := base.now + int64(max(wall, monotonic))
		if (wall-monotonic).Abs() <= clocksApart || m.base.CompareAndSwap(base, &clockBase{t, now}) {
			return now
		}
	}
}

// Get returns a copy of the session under id, or nil. If take is set, the session is removed at
// once.
func (m *Memory) Get(_ context.Context, id []byte, take bool) ([]byte, error) {
	if len(id) == 0 || len(id) > MaxIDLen {
		return nil, ErrID
	}
	s, h := m.shardOf(id)
	return s.get(id, uint32(h), take, m.onward(m.now())), nil
}

// Remove removes a session, if there is one.
func (m *Memory) Remove(_ context.Context, id []byte) error {
	if len(id) == 0 || len(id) > MaxIDLen {
		return ErrID
	}
	s, h := m.shardOf(id)
	s.remove(id, uint32(h), m.onward(m.now()))
	return nil
}

// Clear wipes all sessions. The memory stays allocated.
func (m *Memory) Clear() {
	for i := range m.shards {
		m.shards[i].clear()
	}
}

// Stats returns the sum of the counts of all parts, each read at its own moment.
func (m *Memory) Stats() Stats {
	var sum Stats
	for i := range m.shards {
		sum.add(m.shards[i].stats())
	}
	return sum
}

// String reports how full the cache is.
func (m *Memory) String() string {
	s := m.Stats()
	return fmt.Sprintf("session cache of %d entries, %d bytes", s.Entries, s.Bytes)
}

// Format implements [fmt.Formatter]; no verb prints a session.
func (m *Memory) Format(s fmt.State, verb rune) { fmt.Fprint(s, m.String()) }

var _ Cache = (*Memory)(nil)
