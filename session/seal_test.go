package session_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/session"
)

func secret(n byte) session.Secret { return session.Secret(bytes.Repeat([]byte{n}, 32)) }

func newSealer(t testing.TB, purpose string, secrets ...session.Secret) *session.Sealer {
	t.Helper()
	s, err := session.NewSealer(purpose, secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A plainStore is an unbounded Cache that shows its contents.
type plainStore struct {
	mu      sync.Mutex
	values  map[string][]byte
	expires map[string]time.Time
	calls   int
	err     error
}

func newPlainStore() *plainStore {
	return &plainStore{values: map[string][]byte{}, expires: map[string]time.Time{}}
}

func (s *plainStore) Put(_ context.Context, id, session []byte, expires time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.err == nil {
		s.values[string(id)], s.expires[string(id)] = bytes.Clone(session), expires
	}
	return s.err
}

func (s *plainStore) Get(_ context.Context, id []byte, take bool) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	v := s.values[string(id)]
	if take {
		delete(s.values, string(id))
	}
	return bytes.Clone(v), s.err
}

func (s *plainStore) Remove(_ context.Context, id []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	delete(s.values, string(id))
	return s.err
}

func (s *plainStore) only(t *testing.T) (id string, value []byte) {
	t.Helper()
	if len(s.values) != 1 {
		t.Fatalf("%d values in the store", len(s.values))
	}
	for id, value = range s.values {
	}
	return id, value
}

func TestSeal(t *testing.T) {
	ctx, c, store := t.Context(), newClock(), newPlainStore()
	cache := session.SealAt(store, newSealer(t, "sessions", secret(1)), c.now)
	id, value := []byte("the session's ID, 32 bytes of it"), bytes.Repeat([]byte("the session's master secret "), 6)
	expires := c.at.Add(time.Hour)
	if err := cache.Put(ctx, id, value, expires); err != nil {
		t.Fatal(err)
	}
	storeID, sealed := store.only(t)
	if len(storeID) != 32 || storeID == string(id) || bytes.Contains(sealed, id) || bytes.Contains(sealed, value[:8]) {
		t.Errorf("the store sees ID %q and %q", storeID, sealed)
	}
	if len(sealed) != len(value)+session.SealOverhead {
		t.Errorf("%d bytes sealed as %d", len(value), len(sealed))
	}
	if !store.expires[storeID].Equal(expires) {
		t.Errorf("kept until %v, not %v", store.expires[storeID], expires)
	}
	get := func(take bool, want []byte) {
		t.Helper()
		if got, err := cache.Get(ctx, id, take); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("Get: %q, %v; want %q", got, err, want)
		}
	}
	get(false, value)
	if err := cache.Put(ctx, id, value, expires); err != nil {
		t.Fatal(err)
	}
	if _, again := store.only(t); bytes.Equal(again[1+8:], sealed[1+8:]) {
		t.Error("the same value is sealed alike")
	}
	get(true, value)
	get(true, nil)

	// A store can't extend a session's life.
	if err := cache.Put(ctx, id, value, expires); err != nil {
		t.Fatal(err)
	}
	c.at = expires.Add(-time.Millisecond)
	get(false, value)
	c.at = expires
	get(false, nil)
	c.at = expires.Add(-time.Minute)
	if err := cache.Remove(ctx, id); err != nil {
		t.Fatal(err)
	}
	get(false, nil)

	for _, err := range []error{
		cache.Put(ctx, nil, value, expires), cache.Remove(ctx, nil),
		func() error { _, err := cache.Get(ctx, []byte{}, false); return err }(),
	} {
		if !errors.Is(err, session.ErrID) {
			t.Errorf("an empty ID: %v", err)
		}
	}
}

// TestSealTampered changes every bit of a sealed value, truncates it everywhere, and opens it with
// other IDs, purposes and secrets.
func TestSealTampered(t *testing.T) {
	s := newSealer(t, "sessions", secret(1), secret(2))
	id, value, expires := []byte("id"), []byte("a session"), time.Unix(2e9, 0)
	sealed := s.Seal(id, value, expires)
	if got, at, err := s.Open(id, sealed); err != nil || !bytes.Equal(got, value) || !at.Equal(expires) {
		t.Fatal(got, at, err)
	}
	refused := func(what string, s *session.Sealer, id, sealed []byte) {
		t.Helper()
		if got, at, err := s.Open(id, sealed); !errors.Is(err, session.ErrSealed) || got != nil || !at.IsZero() {
			t.Errorf("%s: %q, %v, %v", what, got, at, err)
		}
	}
	for i := range len(sealed) * 8 {
		changed := bytes.Clone(sealed)
		changed[i/8] ^= 1 << (i % 8)
		refused("a bit changed", s, id, changed)
	}
	for i := range sealed {
		refused("cut", s, id, sealed[:i])
	}
	refused("longer", s, id, append(bytes.Clone(sealed), 0))
	refused("another ID", s, []byte("ie"), sealed)
	refused("a longer ID", s, []byte("id\x00"), sealed)
	refused("no ID", s, nil, sealed)
	refused("another purpose", newSealer(t, "ticket keys", secret(1)), id, sealed)
	refused("another secret", newSealer(t, "sessions", secret(3)), id, sealed)
	if got, _, err := newSealer(t, "sessions", secret(3), secret(1)).Open(id, sealed); err != nil || !bytes.Equal(got, value) {
		t.Error("the second secret doesn't open", err)
	}
}

// TestSealSwappedByStore: a forged value is a miss and an error, never another session.
func TestSealSwappedByStore(t *testing.T) {
	ctx, store := t.Context(), newPlainStore()
	cache := session.Seal(store, newSealer(t, "sessions", secret(1)))
	expires := time.Now().Add(time.Hour)
	for _, id := range []string{"a", "b"} {
		if err := cache.Put(ctx, []byte(id), []byte("session "+id), expires); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for id := range store.values {
		ids = append(ids, id)
	}
	store.values[ids[0]], store.values[ids[1]] = store.values[ids[1]], store.values[ids[0]]
	for _, id := range []string{"a", "b"} {
		if got, err := cache.Get(ctx, []byte(id), false); got != nil || !errors.Is(err, session.ErrSealed) {
			t.Errorf("swapped: %q, %v", got, err)
		}
	}
	store.values[ids[0]] = []byte("junk")
	store.values[ids[1]] = nil
	for _, id := range []string{"a", "b"} {
		if got, err := cache.Get(ctx, []byte(id), true); got != nil || err != nil && !errors.Is(err, session.ErrSealed) {
			t.Errorf("junk: %q, %v", got, err)
		}
	}
	store.err = errors.New("the store is down")
	if got, err := cache.Get(ctx, []byte("a"), false); got != nil || !errors.Is(err, store.err) {
		t.Errorf("down: %q, %v", got, err)
	}
	if err := cache.Put(ctx, []byte("a"), []byte("s"), expires); !errors.Is(err, store.err) {
		t.Errorf("down: Put: %v", err)
	}
	if err := cache.Remove(ctx, []byte("a")); !errors.Is(err, store.err) {
		t.Errorf("down: Remove: %v", err)
	}
}

// TestSealerRotation changes a fleet's secret as the documentation describes. At every moment, a
// session made by any member opens on all, is taken once, and is gone everywhere when it is
// removed.
func TestSealerRotation(t *testing.T) {
	ctx, store := t.Context(), newPlainStore()
	const members = 3
	var sealers []*session.Sealer
	var caches []session.Cache
	for range members {
		s := newSealer(t, "sessions", secret(1))
		sealers = append(sealers, s)
		caches = append(caches, session.Seal(store, s))
	}
	everywhere := func(when string) {
		t.Helper()
		expires := time.Now().Add(time.Hour)
		id := []byte("id")
		for i, from := range caches {
			for j, to := range caches {
				for k, last := range caches {
					if err := from.Put(ctx, id, []byte("old"), expires); err != nil {
						t.Fatal(err)
					}
					if err := to.Put(ctx, id, []byte("new"), expires); err != nil {
						t.Fatal(err)
					}
					if got, err := last.Get(ctx, id, true); err != nil || string(got) != "new" {
						t.Errorf("%s: put by %d and %d, taken by %d: %q, %v", when, i, j, k, got, err)
					}
					for _, c := range caches {
						if got, err := c.Get(ctx, id, true); err != nil || got != nil {
							t.Errorf("%s: put by %d and %d: taken again: %q, %v", when, i, j, got, err)
						}
					}
				}
				if err := from.Put(ctx, id, []byte("session"), expires); err != nil {
					t.Fatal(err)
				}
				if err := to.Remove(ctx, id); err != nil {
					t.Fatal(err)
				}
				if len(store.values) != 0 {
					t.Errorf("%s: put by %d, removed by %d: still there", when, i, j)
				}
			}
		}
	}
	everywhere("before")
	for _, step := range [][]session.Secret{{secret(1), secret(2)}, {secret(2), secret(1)}, {secret(2)}} {
		for _, s := range sealers {
			if err := s.Set(step...); err != nil {
				t.Fatal(err)
			}
			everywhere("between")
		}
	}
}

func TestSealerRefuses(t *testing.T) {
	for name, secrets := range map[string][]session.Secret{
		"none":  nil,
		"zero":  {secret(1), {}},
		"twice": {secret(1), secret(2), secret(1)},
	} {
		if s, err := session.NewSealer("p", secrets...); err == nil || s != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestSealedMemory: the IDs that Seal makes fit into a Memory.
func TestSealedMemory(t *testing.T) {
	cache := session.Seal(session.NewCache(10), newSealer(t, "sessions", secret(1)))
	if err := cache.Put(t.Context(), make([]byte, 100), []byte("session"), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, err := cache.Get(t.Context(), make([]byte, 100), true); err != nil || string(got) != "session" {
		t.Fatal(got, err)
	}
}

func FuzzSealerOpen(f *testing.F) {
	s := newSealer(f, "sessions", secret(1), secret(2))
	id, value := []byte("id"), []byte("a session")
	sealed := s.Seal(id, value, time.Unix(2e9, 0))
	f.Add(sealed)
	f.Add(sealed[:session.SealOverhead])
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) { // the seeds come from another process: a value that opens is one that was sealed there
		got, at, err := s.Open(id, b)
		opened := err == nil && bytes.Equal(got, value) && at.Unix() == 2e9
		if !opened && (got != nil || !errors.Is(err, session.ErrSealed)) {
			t.Fatalf("%x opens as %q until %v, %v", b, got, at, err)
		}
	})
}

func BenchmarkSealer(b *testing.B) {
	s := newSealer(b, "sessions", secret(1))
	id, value, expires := make([]byte, 32), make([]byte, 180), time.Now()
	sealed := s.Seal(id, value, expires)
	b.Run("op=seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Seal(id, value, expires)
		}
	})
	b.Run("op=open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Open(id, sealed)
		}
	})
}
