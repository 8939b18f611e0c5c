package session_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ossl-go/ossl/session"
)

// A clock that tests set.
type clock struct{ at time.Time }

func newClock() *clock               { return &clock{time.Unix(1_800_000_000, 0)} }
func (c *clock) now() time.Time      { return c.at }
func (c *clock) add(d time.Duration) { c.at = c.at.Add(d) }

// A model implements the documented behaviour of a cache of one shard: a list in order of use. It
// drops expired sessions at once.
type model struct {
	clock           *clock
	entries, blocks int // room
	ttl             time.Duration
	list            []modelEntry // the most recently used first
	evictions       uint64
	hits, misses    uint64
	puts, refused   uint64
}

type modelEntry struct {
	id, session string
	expires     time.Time
}

func (e modelEntry) blocks() int { return (len(e.session) + 59) / 60 }

func (m *model) expire() {
	m.list = slices.DeleteFunc(m.list, func(e modelEntry) bool { return !e.expires.After(m.clock.at) })
}

func (m *model) find(id string) int {
	return slices.IndexFunc(m.list, func(e modelEntry) bool { return e.id == id })
}

func (m *model) used() (n int) {
	for _, e := range m.list {
		n += e.blocks()
	}
	return n
}

func (m *model) put(id, value string, expires time.Time) error {
	if len(id) == 0 || len(id) > 32 {
		return session.ErrID
	}
	m.expire()
	if i := m.find(id); i >= 0 {
		m.list = slices.Delete(m.list, i, i+1)
	}
	e := modelEntry{id, value, expires}
	if limit := m.clock.at.Add(m.ttl); expires.After(limit) {
		e.expires = limit
	}
	if e.blocks() > m.blocks {
		m.refused++
		return session.ErrTooLarge
	}
	if !e.expires.After(m.clock.at) {
		return nil
	}
	for len(m.list) == m.entries || m.used()+e.blocks() > m.blocks {
		m.list = m.list[:len(m.list)-1]
		m.evictions++
	}
	m.list = slices.Insert(m.list, 0, e)
	m.puts++
	return nil
}

func (m *model) get(id string, take bool) (string, bool, error) {
	if len(id) == 0 || len(id) > 32 {
		return "", false, session.ErrID
	}
	m.expire()
	i := m.find(id)
	if i < 0 {
		m.misses++
		return "", false, nil
	}
	m.hits++
	e := m.list[i]
	m.list = slices.Delete(m.list, i, i+1)
	if !take {
		m.list = slices.Insert(m.list, 0, e)
	}
	return e.session, true, nil
}

func (m *model) remove(id string) {
	if i := m.find(id); i >= 0 {
		m.list = slices.Delete(m.list, i, i+1)
	}
}

// play runs operations, four bytes each, on a cache and on the model, and compares all visible
// results.
func play(t *testing.T, entries, blocks int, ops []byte) {
	t.Helper()
	c := newClock()
	const ttl = time.Hour
	bytesBound := int64(entries)*80 + int64(blocks)*64
	cache, err := session.NewMemory(session.MemoryConfig{Entries: entries, Bytes: bytesBound, MaxTTL: ttl, Shards: 1, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	if bound := cache.Bound(); bound > bytesBound {
		t.Fatalf("a cache of %d bytes may allocate %d", bytesBound, bound)
	}
	m := &model{clock: c, entries: entries, blocks: blocks, ttl: ttl}
	ctx := context.Background()
	for n := 0; len(ops) >= 4; n++ {
		kind, which, a, b := ops[0], ops[1], ops[2], ops[3]
		ops = ops[4:]
		id := fmt.Appendf(nil, "%d", which%(byte(2*entries)|1))
		switch which {
		case 0:
			id = bytes.Repeat([]byte{7}, int(a)%40) // including lengths 0 and above 32
		case 1:
			id = bytes.Repeat([]byte{8}, 32)
		}
		switch kind % 8 {
		case 0, 1, 2:
			value := bytes.Repeat([]byte{b}, int(a))
			if b == 255 {
				value = bytes.Repeat([]byte{b}, 60*blocks-128+int(a)) // about the maximum
			}
			expires := c.at.Add(time.Duration(int(b)-10) * time.Minute)
			want, got := m.put(string(id), string(value), expires), cache.Put(ctx, id, value, expires)
			if got != want {
				t.Fatalf("operation %d: Put(%x, %d bytes): %v, want %v", n, id, len(value), got, want)
			}
			for i := range value {
				value[i] = 0xee // the cache must not keep it
			}
		case 3, 4, 5:
			take := kind%8 == 5
			want, ok, wantErr := m.get(string(id), take)
			got, err := cache.Get(ctx, id, take)
			if err != wantErr || (got != nil) != ok || string(got) != want {
				t.Fatalf("operation %d: Get(%x, %v): %d bytes %.8x, %v; want %d bytes %.8x, %v",
					n, id, take, len(got), got, err, len(want), want, wantErr)
			}
			for i := range got {
				got[i] = 0xee // it belongs to the caller
			}
		case 6:
			m.remove(string(id))
			if err := cache.Remove(ctx, id); err != nil && len(id) > 0 && len(id) <= 32 {
				t.Fatalf("operation %d: Remove(%x): %v", n, id, err)
			}
		case 7:
			d := time.Duration(int(a)-20) * time.Second
			if d < 0 { // backwards; sessions expired by then must not come back
				wipe(cache, m)
			}
			c.add(d)
		}
		if wrong := cache.Check(); wrong != nil {
			t.Fatalf("operation %d: %q", n, wrong)
		}
		s := cache.Stats()
		m.expire()
		if s.Hits != m.hits || s.Misses != m.misses || s.Evictions != m.evictions || s.Puts != m.puts || s.Refused != m.refused ||
			s.Entries < len(m.list) || s.Entries > entries || s.Bytes > bytesBound || s.Allocated > bytesBound {
			t.Fatalf("operation %d: %+v, want like %+v", n, s, m)
		}
	}
	checkWiped(t, cache, m)
}

// wipe makes a cache notice all expired sessions, of which each operation wipes 16.
func wipe(cache *session.Memory, m *model) {
	for range m.entries/16 + 1 {
		cache.Remove(context.Background(), []byte("nobody"))
	}
}

// checkWiped looks at all memory of a cache: it holds the sessions that the model has, and zeros.
func checkWiped(t *testing.T, cache *session.Memory, m *model) {
	t.Helper()
	wipe(cache, m)
	held := map[byte]int{}
	cache.Scan(func([]byte) {}, func(data []byte) {
		for _, b := range data {
			held[b]++
		}
	})
	for _, e := range m.list {
		for i := range len(e.session) {
			held[e.session[i]]--
		}
	}
	for b, n := range held {
		if b != 0 && n != 0 {
			t.Fatalf("%d bytes %#x too many in the cache's memory: they were not wiped", n, b)
		}
	}
}

func TestMemoryIsTheModel(t *testing.T) {
	for _, size := range []struct{ entries, blocks int }{{1, 3}, {2, 4}, {5, 20}, {16, 40}, {100, 400}} {
		t.Run(fmt.Sprintf("entries=%d", size.entries), func(t *testing.T) {
			for seed := range uint64(40) {
				random := rand.NewChaCha8([32]byte{byte(seed), byte(size.entries)})
				ops := make([]byte, 4*600)
				random.Read(ops)
				play(t, size.entries, size.blocks, ops)
			}
		})
	}
}

func FuzzMemory(f *testing.F) {
	f.Add(uint8(3), uint8(6), []byte("\x00abc\x03abc\x05abc\x07\xff\xff\x00"))
	f.Add(uint8(1), uint8(3), bytes.Repeat([]byte{0, 2, 180, 200, 1, 3, 180, 200, 3, 2, 0, 0, 6, 3, 0, 0}, 8))
	f.Add(uint8(9), uint8(37), []byte{0, 2, 10, 11, 7, 0, 81, 0, 7, 0, 0, 0, 3, 2, 0, 0}) // expired before the clock goes back
	f.Fuzz(func(t *testing.T, entries, blocks uint8, ops []byte) {
		if len(ops) > 4*2000 {
			ops = ops[:4*2000]
		}
		play(t, 1+int(entries)%120, 3+int(blocks), ops)
	})
}
