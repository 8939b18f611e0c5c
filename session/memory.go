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

// MaxIDLen is the length of the longest ID that a [Memory] keeps: session IDs of TLS have at most 32 bytes (RFC 5246, section
// 7.4.1.2), and so have those that [Seal] makes.
const MaxIDLen = 32

// MaxTTL is how long a session is kept at most unless less is asked for: RFC 8446, section 4.6.1, allows no more.
const MaxTTL = 7 * 24 * time.Hour

// BytesPerEntry is the memory that [NewCache] plans for a session: 76 bytes of an entry with its ID, 4 of the index, blocks for
// 240 bytes of the session on average, and an eighth for the allocator's rounding.
const BytesPerEntry = 400

var (
	// ErrID refuses an ID that is empty or longer than [MaxIDLen].
	ErrID = errors.New("session: an ID has 1 to 32 bytes")

	// ErrTooLarge refuses a session for which a cache would have no room if it held nothing else.
	ErrTooLarge = errors.New("session: the session is too large for the cache")
)

// A Memory is a [Cache] in the process's memory, bounded by entries and by bytes. When it is full it drops what has expired, then
// what was not used for longest. It may be used by many goroutines and by any number of listeners.
//
// Sessions are copied in and out; their bytes are wiped when they are taken, removed, replaced or dropped, and soon after they
// expire: each operation wipes some.
type Memory struct {
	seed   maphash.Seed // IDs are chosen by peers, who must not be able to choose where they go
	shards []shard
	shift  int // a hash's bits above it are a shard's number
	maxTTL time.Duration
	now    func() time.Time

	base atomic.Pointer[clockBase]
}

// A clockBase relates a Memory's time to the readings of its clocks at one moment.
type clockBase struct {
	at  time.Time
	now int64
}

// MemoryConfig says how much a [Memory] may hold. One of Entries and Bytes must be set.
type MemoryConfig struct {
	// Entries is the number of sessions kept at most. Zero means as many as Bytes has room for at [BytesPerEntry].
	Entries int

	// Bytes bounds the memory for sessions, their IDs and the index, the allocator's rounding (an eighth at most) aside. Zero means
	// what [NewCache] plans for Entries.
	Bytes int64

	// MaxTTL bounds the time that a session is kept, whatever is asked for. Zero means the constant MaxTTL.
	MaxTTL time.Duration

	// Shards is the number of parts, a power of two, each with a lock, and an equal share of entries and bytes, of its own. Zero
	// means one for every 4096 entries, but no more than 32. A part drops sessions when it is full, which is a little before all
	// are; a cache of one part is in strict order of use.
	Shards int

	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// NewCache returns a cache of n sessions for which it never holds more than n times [BytesPerEntry] bytes, and 4096 for the
// cache itself. Sessions of TLS 1.2 without client certificates have 150 to 200 bytes; if those at hand have more than 240 on
// average, fewer than n fit. 4 bytes an entry for the index and 4 for the order of expiry are allocated at once, the rest as
// the cache fills; none is ever given back. NewCache panics if n is less than 1.
func NewCache(n int) *Memory {
	m, err := NewMemory(MemoryConfig{Entries: n})
	if err != nil {
		panic(err)
	}
	return m
}

// maxEntries is how many an int32 can number, and more than memory has room for.
const maxEntries = 1 << 30

// NewMemory returns a cache with the bounds of c. It refuses bounds that leave no room for a session of 180 bytes.
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
		return nil, fmt.Errorf("session: %d shards: a power of two is needed, and no more than there are entries", c.Shards)
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

// shardOf returns the part where an ID belongs, and the ID's hash.
func (m *Memory) shardOf(id []byte) (*shard, uint64) {
	h := maphash.Bytes(m.seed, id)
	return &m.shards[h>>m.shift], h // a shift by 64 gives 0
}

// Put keeps a session under id until expires, in place of what is there; if it can't be kept, nothing is there. Memory never
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

// clocksApart is the difference between the two clocks' advances that is ignored: they never agree exactly.
const clocksApart = time.Second

// onward returns the time by which sessions expire, in nanoseconds. It follows the clock that advances more, so that no session
// lasts longer because the wall clock is set back, or because the monotonic clock stood still while the machine slept.
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

// Get returns a copy of the session that is kept under id, or nil. With take it is removed at once.
func (m *Memory) Get(_ context.Context, id []byte, take bool) ([]byte, error) {
	if len(id) == 0 || len(id) > MaxIDLen {
		return nil, ErrID
	}
	s, h := m.shardOf(id)
	return s.get(id, uint32(h), take, m.onward(m.now())), nil
}

// Remove forgets a session, if it is there.
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

// Stats returns the counts of all parts, each at its own moment.
func (m *Memory) Stats() Stats {
	var sum Stats
	for i := range m.shards {
		sum.add(m.shards[i].stats())
	}
	return sum
}

// String says how full the cache is.
func (m *Memory) String() string {
	s := m.Stats()
	return fmt.Sprintf("session cache of %d entries, %d bytes", s.Entries, s.Bytes)
}

// Format implements [fmt.Formatter]: no verb prints a session.
func (m *Memory) Format(s fmt.State, verb rune) { fmt.Fprint(s, m.String()) }

var _ Cache = (*Memory)(nil)
