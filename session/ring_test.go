package session_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/session"
)

func TestRing(t *testing.T) {
	a, b := session.NewTicketKey(), session.NewTicketKey()
	r, err := session.NewRing(a, b)
	if err != nil {
		t.Fatal(err)
	}
	keys, generation := r.Snapshot()
	if len(keys) != 2 || keys[0].Name != a.Name || keys[1].Name != b.Name || generation == 0 || generation != r.Generation() {
		t.Fatalf("%v, %d", keys, generation)
	}
	a.Cipher[0] ^= 1
	if again, _ := r.Snapshot(); again[0].Cipher[0] == a.Cipher[0] {
		t.Error("the ring keeps the caller's memory")
	}
	a.Cipher[0] ^= 1

	seen := map[uint64]bool{generation: true}
	changed := func(r *session.Ring) {
		t.Helper()
		if g := r.Generation(); seen[g] {
			t.Errorf("generation %d again", g)
		} else {
			seen[g] = true
		}
	}
	if err := r.Set(b, a); err != nil {
		t.Fatal(err)
	}
	changed(r)
	if err := r.Set(b, a); err != nil {
		t.Fatal(err)
	}
	changed(r)
	other, err := session.NewRing(b, a)
	if err != nil {
		t.Fatal(err)
	}
	changed(other)
	if keys, _ := r.Snapshot(); keys[0].Name != b.Name {
		t.Error("Set had no effect")
	}

	short, long := session.NewTicketKey(), session.NewTicketKey()
	short.Cipher, long.MAC = short.Cipher[:24], make([]byte, 64)
	unset := session.NewTicketKey()
	clear(unset.MAC)
	for name, bad := range map[string][]session.TicketKey{
		"no keys":        nil,
		"twice":          {a, b, a},
		"AES-192":        {a, short},
		"MAC of 64":      {a, long},
		"MAC of zeros":   {a, unset},
		"the zero value": {{}},
	} {
		if _, err := session.NewRing(bad...); err == nil {
			t.Errorf("%s: NewRing accepts it", name)
		}
		before := r.Generation()
		if err := r.Set(bad...); err == nil || r.Generation() != before {
			t.Errorf("%s: Set: %v, generation %d after %d", name, err, r.Generation(), before)
		}
	}

	r.Clear()
	changed(r)
	if keys, _ := r.Snapshot(); len(keys) != 0 {
		t.Error("keys after Clear")
	}
	if keys, generation := new(session.Ring).Snapshot(); keys != nil || generation != 0 {
		t.Error("the zero Ring has keys")
	}
}

// TestRotatingRing follows a ring through random moments: the first key is younger than the period,
// none is older than the lifetime, none that is younger is gone, and nothing changes without a new
// number.
func TestRotatingRing(t *testing.T) {
	const period, lifetime = 24 * time.Hour, 7 * 24 * time.Hour
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		c := &clock{time.Now()}
		r := session.NewRotatingRing(0, 0)
		r.SetClock(c.now)
		made := map[[16]byte]time.Time{}
		var lastKeys []session.TicketKey
		var last uint64
		rotations := 0
		for range 500 {
			keys, generation := r.Snapshot()
			if len(keys) == 0 {
				t.Fatal("no keys")
			}
			if _, known := made[keys[0].Name]; !known {
				made[keys[0].Name] = c.at
				rotations++
			}
			if age := c.at.Sub(made[keys[0].Name]); age >= period {
				t.Fatalf("the key that seals is %v old", age)
			}
			for _, k := range keys {
				if at, known := made[k.Name]; !known || c.at.Sub(at) >= lifetime {
					t.Fatalf("a key that was made at %v opens at %v", at, c.at)
				}
			}
			young := 0
			for _, at := range made {
				if c.at.Sub(at) < lifetime {
					young++
				}
			}
			if young != len(keys) {
				t.Fatalf("%d keys, %d are young enough", len(keys), young)
			}
			same := slices.EqualFunc(keys, lastKeys, func(a, b session.TicketKey) bool { return a.Name == b.Name })
			if same != (generation == last) {
				t.Fatalf("generation %d after %d, keys the same: %v", generation, last, same)
			}
			lastKeys, last = keys, generation
			c.add(time.Duration(random.Int64N(int64(12 * time.Hour))))
		}
		if rotations < 50 {
			t.Errorf("%d rotations in about 125 days", rotations)
		}
	}
}

// TestRotatingRingClockMoved: a wall clock that is set back doesn't stop rotation.
func TestRotatingRingClockMoved(t *testing.T) {
	r := session.NewRotatingRing(time.Hour, 2*time.Hour)
	first := r.Generation()
	start := time.Now() // with a reading of the monotonic clock, which goes on
	r.SetClock(func() time.Time { return start.Add(-time.Hour) })
	if r.Generation() != first {
		t.Error("a clock that was set back makes keys")
	}
	r.SetClock(func() time.Time { return start.Add(time.Hour) })
	if r.Generation() == first {
		t.Error("no rotation")
	}
	r = session.NewRotatingRing(time.Hour, 2*time.Hour)
	first = r.Generation()
	r.SetClock(func() time.Time { return time.Now().Round(0).Add(time.Hour) }) // the wall clock alone
	if r.Generation() == first {
		t.Error("no rotation by the wall clock")
	}
}

func TestRotatingRingSet(t *testing.T) {
	c := &clock{time.Now()}
	r := session.NewRotatingRing(time.Hour, time.Hour)
	r.SetClock(c.now)
	key := session.NewTicketKey()
	if err := r.Set(key); err != nil {
		t.Fatal(err)
	}
	generation := r.Generation()
	c.add(1000 * time.Hour)
	if keys, g := r.Snapshot(); g != generation || len(keys) != 1 || keys[0].Name != key.Name {
		t.Error("a ring whose keys were set rotates")
	}
	for _, bad := range [][2]time.Duration{{-1, 0}, {2, 1}, {1, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewRotatingRing(%v, %v): no panic", bad[0], bad[1])
				}
			}()
			session.NewRotatingRing(bad[0], bad[1])
		}()
	}
}

// unreliable returns a given number of bytes, then fails.
type unreliable struct {
	fails  bool
	within int // bytes that are given before the failure
}

var errUnreliable = errors.New("no random bytes")

func (u *unreliable) Read(b []byte) (int, error) {
	n := len(b)
	if u.fails {
		if n = min(n, u.within); n == 0 {
			return 0, errUnreliable
		}
		u.within -= n
	}
	for i := range b[:n] {
		b[i] = byte(rand.Uint32())
	}
	return n, nil
}

// TestRotatingRingFrom: if the generator fails at first, that is an error. If it fails later, the
// ring keeps its keys, but no longer than their lifetime; once the generator works again, so does
// the ring.
func TestRotatingRingFrom(t *testing.T) {
	const period, lifetime = time.Hour, 3 * time.Hour
	for _, within := range []int{0, 1, 79} {
		ring, err := session.NewRotatingRingFrom(&unreliable{fails: true, within: within}, period, lifetime)
		if ring != nil || !errors.Is(err, errUnreliable) {
			t.Fatalf("after %d bytes: %v, %v", within, ring, err)
		}
	}

	random := &unreliable{}
	r, err := session.NewRotatingRingFrom(random, period, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{time.Now()}
	r.SetClock(c.now)
	names := func() (names [][16]byte) {
		keys, _ := r.Snapshot()
		for _, k := range keys {
			names = append(names, k.Name)
		}
		return names
	}
	first := names()
	c.add(period)
	two := names()
	if len(two) != 2 || two[1] != first[0] {
		t.Fatalf("%x, then %x", first, two)
	}

	random.fails = true
	generation := r.Generation()
	for range 3 { // until 1:45 after the first key: nothing is due
		c.add(period / 4)
		if got := names(); !slices.Equal(got, two) || r.Generation() != generation {
			t.Fatalf("%x of %x, generation %d after %d", got, two, r.Generation(), generation)
		}
	}
	c.add(period) // 2:45: the second key should have ceased to seal
	random.within = 40
	if got := names(); !slices.Equal(got, two) || r.Generation() != generation {
		t.Fatalf("without random bytes: %x of %x, generation %d after %d", got, two, r.Generation(), generation)
	}
	c.add(period / 4) // 3:00
	if got := names(); !slices.Equal(got, two[:1]) || r.Generation() == generation {
		t.Fatalf("the first key at its lifetime: %x of %x", got, two)
	}
	c.add(period) // 4:00
	generation = r.Generation()
	if got := names(); len(got) != 0 {
		t.Fatalf("the second key at its lifetime: %x", got)
	}
	if r.Generation() != generation {
		t.Fatal("a new generation of no keys at each call")
	}

	random.fails = false
	if got := names(); len(got) != 1 || slices.Contains(two, got[0]) {
		t.Fatalf("with random bytes again: %x", got)
	}
}

// TestRingConcurrent: each snapshot is a list that was set as a whole, and the numbers never
// decrease.
func TestRingConcurrent(t *testing.T) {
	a, b := session.NewTicketKey(), session.NewTicketKey()
	r := session.NewRotatingRing(time.Nanosecond, 50*time.Microsecond) // changes all the time, until Set
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			last := uint64(0)
			for {
				keys, generation := r.Snapshot()
				if len(keys) == 0 || generation < last {
					t.Errorf("%d keys, generation %d after %d", len(keys), generation, last)
				}
				last = generation
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range 2000 {
		if i < 1000 {
			r.Generation()
		} else if err := r.Set([]session.TicketKey{a, b}[i&1]); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	if keys, _ := r.Snapshot(); len(keys) != 1 || keys[0].Name != b.Name {
		t.Errorf("%v", keys)
	}
}

func TestSnapshotAllocatesNothing(t *testing.T) {
	fixed, err := session.NewRing(session.NewTicketKey())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*session.Ring{fixed, session.NewRotatingRing(0, 0)} {
		if n := testing.AllocsPerRun(100, func() { r.Snapshot() }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	fixed, err := session.NewRing(session.NewTicketKey())
	if err != nil {
		b.Fatal(err)
	}
	for name, r := range map[string]*session.Ring{"fixed": fixed, "rotating": session.NewRotatingRing(0, 0)} {
		b.Run("ring="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Snapshot()
			}
		})
	}
}

// TestSealingSince checks that only another first key changes the time.
func TestSealingSince(t *testing.T) {
	var r session.Ring
	if since := r.SealingSince(); !since.IsZero() {
		t.Errorf("a ring without keys seals since %v", since)
	}
	first, second := session.NewTicketKey(), session.NewTicketKey()
	set := func(keys ...session.TicketKey) time.Time {
		t.Helper()
		if err := r.Set(keys...); err != nil {
			t.Fatal(err)
		}
		return r.SealingSince()
	}
	since := set(first)
	if age := time.Since(since); age < 0 || age > time.Hour {
		t.Errorf("the key is %v old", age)
	}
	if again := set(first, second); !again.Equal(since) {
		t.Errorf("another key that only opens: %v, then %v", since, again)
	}
	if later := set(second, first); !later.After(since) {
		t.Errorf("another key that seals: %v, then %v", since, later)
	}
	r.Clear()
	if since := r.SealingSince(); !since.IsZero() {
		t.Errorf("a cleared ring seals since %v", since)
	}

	c := &clock{time.Now()}
	rotating := session.NewRotatingRing(time.Hour, 3*time.Hour)
	rotating.SetClock(c.now)
	made := rotating.SealingSince()
	c.add(30 * time.Minute)
	if got := rotating.SealingSince(); !got.Equal(made) {
		t.Errorf("before the rotation: %v, want %v", got, made)
	}
	c.add(time.Hour)
	if got := rotating.SealingSince(); !got.Equal(c.at) {
		t.Errorf("after the rotation: %v, want %v", got, c.at)
	}
}
