package session_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// fill puts n sessions of size bytes into a cache, with IDs that id makes.
func fill(t testing.TB, cache session.Cache, n, size int) {
	t.Helper()
	value := bytes.Repeat([]byte{1}, size)
	id := make([]byte, 32)
	expires := time.Now().Add(time.Hour)
	for i := range n {
		binary.BigEndian.PutUint64(id, uint64(i))
		if err := cache.Put(context.Background(), id, value, expires); err != nil {
			t.Fatal(err)
		}
	}
}

func heapAlloc() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestMemoryPerEntry compares NewCache with the bound that it documents, when it is full and
// before, and measures the memory of a session.
func TestMemoryPerEntry(t *testing.T) {
	fill(t, session.NewCache(1), 1, 1) // the process's one-time allocations
	heapAlloc()
	for _, n := range []int{1, 2, 3, 10, 37, 100, 500, 1000, 1500, 5000, 20_000, 100_000} {
		t.Run(fmt.Sprintf("entries=%d", n), func(t *testing.T) {
			// The runtime and other goroutines allocate too, a few KB now and then: the smallest
			// result of some tries is the cache's own.
			if !retry(func(t testing.TB) { memoryPerEntry(t, n) }, 5) {
				memoryPerEntry(t, n)
			}
		})
	}
}

// retry calls f up to n times until it succeeds, and reports whether it did.
func retry(f func(testing.TB), n int) bool {
	for range n {
		if quiet := new(quietly); quiet.run(f) {
			return true
		}
	}
	return false
}

// quietly is a testing.TB that does not report failures.
type quietly struct {
	testing.TB
	failed bool
}

func (q *quietly) Helper()               {}
func (q *quietly) Logf(string, ...any)   {}
func (q *quietly) Errorf(string, ...any) { q.failed = true }
func (q *quietly) Fatal(...any)          { q.failed = true }

func (q *quietly) run(f func(testing.TB)) bool {
	f(q)
	return !q.failed
}

func memoryPerEntry(t testing.TB, n int) {
	before := heapAlloc()
	cache := session.NewCache(n)
	fill(t, cache, n, 180)
	full := heapAlloc() - before
	s := cache.Stats()
	perEntry := float64(full) / float64(s.Entries)
	t.Logf("%d sessions of 180 bytes in a cache for %d: %.1f bytes each", s.Entries, n, perEntry)
	if s.Entries < n*98/100 {
		t.Errorf("%d of %d sessions kept", s.Entries, n)
	}
	if n >= 100_000 && perEntry > session.BytesPerEntry {
		t.Errorf("%.1f bytes an entry, more than %d", perEntry, session.BytesPerEntry)
	}
	fill(t, cache, 2*n, 240) // fills it
	if full, bound := heapAlloc()-before, uint64(n*session.BytesPerEntry+4096); full > bound {
		t.Errorf("%d bytes, more than the bound of %d", full, bound)
	}
	if s := cache.Stats(); s.Allocated > cache.Bound() || s.Bytes > s.Allocated {
		t.Errorf("%d bytes used of %d allocated of %d", s.Bytes, s.Allocated, cache.Bound())
	}
	runtime.KeepAlive(cache)
}

func TestMemoryConfig(t *testing.T) {
	for name, c := range map[string]session.MemoryConfig{
		"nothing":              {},
		"negative entries":     {Entries: -1},
		"negative bytes":       {Entries: 1, Bytes: -1},
		"negative time":        {Entries: 1, MaxTTL: -1},
		"negative shards":      {Entries: 1, Shards: -1},
		"too many entries":     {Entries: 1<<30 + 1},
		"3 shards":             {Entries: 10, Shards: 3},
		"more shards":          {Entries: 2, Shards: 4},
		"too few bytes":        {Entries: 100, Bytes: 100 * 80},
		"too few bytes at all": {Bytes: session.BytesPerEntry - 1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := session.NewMemory(c); err == nil {
				t.Fatalf("%+v was accepted", c)
			}
		})
	}
	for name, c := range map[string]session.MemoryConfig{
		"entries": {Entries: 10},
		"bytes":   {Bytes: 10 * session.BytesPerEntry},
		"both":    {Entries: 10, Bytes: 4000},
		"shards":  {Entries: 100, Shards: 8},
	} {
		t.Run(name, func(t *testing.T) {
			cache, err := session.NewMemory(c)
			if err != nil {
				t.Fatal(err)
			}
			fill(t, cache, 1000, 100)
			if s := cache.Stats(); s.Entries < 9 || s.Entries > 100 || s.Evictions != uint64(1000-s.Entries) {
				t.Fatalf("%+v", s)
			}
		})
	}
	t.Run("NewCache(0)", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		session.NewCache(0)
	})
}

// TestMemoryMaxTTL: lifetimes are capped, even if the time is beyond the range of nanoseconds since
// 1970.
func TestMemoryMaxTTL(t *testing.T) {
	c := newClock()
	cache, err := session.NewMemory(session.MemoryConfig{Entries: 4, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, expires := range []time.Time{c.at.Add(session.MaxTTL + time.Hour), time.Unix(1<<40, 0), far} {
		id := []byte{byte(i)}
		if err := cache.Put(ctx, id, []byte("session"), expires); err != nil {
			t.Fatal(err)
		}
		start := c.at
		c.at = start.Add(session.MaxTTL - 1)
		if got, _ := cache.Get(ctx, id, false); got == nil {
			t.Errorf("%v: gone before the longest time", expires)
		}
		c.at = start.Add(session.MaxTTL)
		if got, _ := cache.Get(ctx, id, false); got != nil {
			t.Errorf("%v: still there after the longest time", expires)
		}
		c.at = start
	}
	if err := cache.Put(ctx, []byte("zero"), []byte("session"), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got, _ := cache.Get(ctx, []byte("zero"), false); got != nil {
		t.Error("a session without a time was kept")
	}
}

// TestMemoryClocks: neither sleep nor a clock that is set back makes a session last longer.
func TestMemoryClocks(t *testing.T) {
	type moves []struct{ wall, monotonic time.Duration }
	for _, test := range []struct {
		what  string
		moves moves // from put to get
		there bool
	}{
		{"both", moves{{59 * time.Second, 59 * time.Second}}, true},
		{"both, too long", moves{{time.Minute, time.Minute}}, false},
		{"asleep", moves{{time.Minute, 0}}, false},
		{"set back", moves{{-100 * time.Hour, 59 * time.Second}}, true},
		{"set back, too long", moves{{-100 * time.Hour, time.Minute}}, false},
		{"set forward and back", moves{{100 * time.Hour, time.Second}, {-100 * time.Hour, time.Second}}, false},
		{"asleep, then set back", moves{{30 * time.Second, 0}, {-time.Hour, 29 * time.Second}}, true},
		{"asleep, then set back, too long", moves{{30 * time.Second, 0}, {-time.Hour, 30 * time.Second}}, false},
	} {
		for _, before := range []time.Duration{0, 100 * time.Hour, -100 * time.Hour} {
			now := time.Now()
			cache, err := session.NewMemory(session.MemoryConfig{Entries: 4, Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			ctx, id := t.Context(), []byte("id")
			now = tlstest.MoveClocks(now, before, 0)
			if err := cache.Put(ctx, id, []byte("session"), now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			for _, move := range test.moves {
				now = tlstest.MoveClocks(now, move.wall, move.monotonic)
				if _, err := cache.Get(ctx, []byte("another"), false); err != nil {
					t.Fatal(err)
				}
			}
			if got, _ := cache.Get(ctx, id, false); (got != nil) != test.there {
				t.Errorf("%s, the clock set by %v before: there %v, want %v", test.what, before, got != nil, test.there)
			}
			if err := cache.Put(ctx, id, []byte("session"), now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if got, _ := cache.Get(ctx, id, false); got == nil {
				t.Errorf("%s, the clock set by %v before: nothing is kept any more", test.what, before)
			}
		}
	}
}

// TestMemoryTakenOnce: of all callers that take an ID, one gets its session.
func TestMemoryTakenOnce(t *testing.T) {
	cache := session.NewCache(1000)
	const n, takers = 500, 8
	fill(t, cache, n, 180)
	taken := make([]int, takers)
	var wg sync.WaitGroup
	for g := range takers {
		wg.Go(func() {
			id := make([]byte, 32)
			for i := range n {
				binary.BigEndian.PutUint64(id, uint64(i))
				if s, err := cache.Get(context.Background(), id, true); err != nil {
					t.Error(err)
				} else if s != nil {
					taken[g]++
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, k := range taken {
		sum += k
	}
	if sum != n {
		t.Errorf("%d sessions taken %d times", n, sum)
	}
}

// TestMemoryConcurrent uses a small cache from many goroutines; each finds under an ID a whole
// session that one of them put there.
func TestMemoryConcurrent(t *testing.T) {
	cache, err := session.NewMemory(session.MemoryConfig{Entries: 256, Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			ctx := context.Background()
			for range 5000 {
				id := fmt.Appendf(nil, "session %d", random.IntN(600))
				switch random.IntN(6) {
				case 0, 1:
					value := bytes.Repeat(append(id, '|'), 1+random.IntN(30))
					if err := cache.Put(ctx, id, value, time.Now().Add(time.Duration(random.IntN(2000))*time.Microsecond)); err != nil {
						t.Error(err)
					}
				case 2:
					if err := cache.Remove(ctx, id); err != nil {
						t.Error(err)
					}
				case 3:
					cache.Stats()
				default:
					got, err := cache.Get(ctx, id, random.IntN(4) == 0)
					if err != nil {
						t.Error(err)
					}
					if rest := strings.ReplaceAll(string(got), string(id)+"|", ""); rest != "" {
						t.Errorf("under %s: %s", id, got)
					}
				}
			}
		})
	}
	wg.Wait()
	if wrong := cache.Check(); wrong != nil {
		t.Error(wrong)
	}
	cache.Clear()
	if s := cache.Stats(); s.Entries != 0 || s.Bytes != 0 {
		t.Errorf("after Clear: %+v", s)
	}
	cache.Scan(func(id []byte) {
		if !bytes.Equal(id, make([]byte, len(id))) {
			t.Errorf("an ID was not wiped: %x", id)
		}
	}, func(data []byte) {
		if !bytes.Equal(data, make([]byte, len(data))) {
			t.Errorf("a session was not wiped: %x", data)
		}
	})
}

// TestMemoryExpiresUnused: expired sessions are wiped by operations on others.
func TestMemoryExpiresUnused(t *testing.T) {
	c := newClock()
	cache, err := session.NewMemory(session.MemoryConfig{Entries: 1000, Shards: 1, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for i := range 100 {
		if err := cache.Put(ctx, fmt.Appendf(nil, "%d", i), []byte("secret"), c.at.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	c.add(time.Minute)
	for range 10 {
		if got, err := cache.Get(ctx, []byte("another"), false); got != nil || err != nil {
			t.Fatal(got, err)
		}
	}
	if s := cache.Stats(); s.Entries != 0 || s.Expirations != 100 || s.Evictions != 0 {
		t.Errorf("%+v", s)
	}
}

func TestMemoryRefusesIDs(t *testing.T) {
	cache := session.NewCache(10)
	ctx := context.Background()
	for _, id := range [][]byte{nil, {}, make([]byte, 33)} {
		if err := cache.Put(ctx, id, []byte("session"), time.Now().Add(time.Hour)); !errors.Is(err, session.ErrID) {
			t.Errorf("Put with %d bytes: %v", len(id), err)
		}
		if got, err := cache.Get(ctx, id, false); got != nil || !errors.Is(err, session.ErrID) {
			t.Errorf("Get with %d bytes: %v, %v", len(id), got, err)
		}
		if err := cache.Remove(ctx, id); !errors.Is(err, session.ErrID) {
			t.Errorf("Remove with %d bytes: %v", len(id), err)
		}
	}
}

// TestMemoryAllocations: a Get allocates the session's copy and nothing else, a Put into a full
// cache nothing.
func TestMemoryAllocations(t *testing.T) {
	cache := session.NewCache(100)
	fill(t, cache, 200, 180)
	ctx, id, value, expires := context.Background(), make([]byte, 32), make([]byte, 180), time.Now().Add(time.Hour)
	binary.BigEndian.PutUint64(id, 199)
	if n := testing.AllocsPerRun(100, func() {
		if got, _ := cache.Get(ctx, id, false); got == nil {
			t.Fatal("not there")
		}
	}); n > 1 {
		t.Errorf("%v allocations a Get", n)
	}
	i := uint64(1000)
	if n := testing.AllocsPerRun(100, func() {
		i++
		binary.BigEndian.PutUint64(id, i)
		cache.Put(ctx, id, value, expires)
	}); n > 0 {
		t.Errorf("%v allocations a Put", n)
	}
}
