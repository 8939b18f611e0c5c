package session

import (
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// A Ring is a list of ticket keys: the first seals tickets, all of them open tickets. It may be
// shared by any number of Contexts and changed while they use it.
//
// The zero Ring holds no key: it neither seals nor opens tickets until Set.
type Ring struct {
	state atomic.Pointer[ringState]

	mu     sync.Mutex       // serializes changes
	now    func() time.Time // the clock; nil if the ring was not made to rotate
	random io.Reader        // the source of new keys, with now
}

// ringState is the state of a Ring between two changes. It is never changed.
type ringState struct {
	keys       []TicketKey
	generation uint64
	since      time.Time // when the first key began to seal here

	created          []time.Time   // when each key was made; nil if the ring doesn't rotate
	period, lifetime time.Duration // how long a key seals, and how old it gets
}

// generations counts the changes of all rings of the process, so that no two states share a number,
// even if they are of different rings.
var generations atomic.Uint64

// NewRing returns a ring with copies of keys. The first one seals. NewRing returns an error for an
// empty list, keys of wrong sizes, keys of zero bytes only, and two keys with the same name.
func NewRing(keys ...TicketKey) (*Ring, error) {
	r := new(Ring)
	if err := r.Set(keys...); err != nil {
		return nil, err
	}
	return r, nil
}

// The period and the lifetime of the keys that crypto/tls makes by itself.
const (
	defaultRingPeriod   = 24 * time.Hour
	defaultRingLifetime = 7 * 24 * time.Hour
)

// NewRotatingRing returns a ring that makes its keys itself, as crypto/tls does: each key seals for
// period, and opens until it is lifetime old. Zero means crypto/tls's values, 24 hours and 7 days.
// NewRotatingRing panics if lifetime is shorter than period, or if either is negative.
//
// Keys are made and dropped when Snapshot or Generation is called. They are known to this process
// only and die with it.
func NewRotatingRing(period, lifetime time.Duration) *Ring {
	r, err := NewRotatingRingFrom(rand.Reader, period, lifetime)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return r
}

// NewRotatingRingFrom is like [NewRotatingRing] but makes keys from the bytes that random returns,
// such as the generator of a FIPS module. Its error is random's. If random fails later, the ring
// continues with the keys it has, and tries again at the next call; keys are still dropped at the
// end of their lifetime.
func NewRotatingRingFrom(random io.Reader, period, lifetime time.Duration) (*Ring, error) {
	if period == 0 {
		period = defaultRingPeriod
	}
	if lifetime == 0 {
		lifetime = max(defaultRingLifetime, period)
	}
	if period < 0 || lifetime < period {
		panic(fmt.Sprintf("session: NewRotatingRing: keys that seal for %v and open for %v", period, lifetime))
	}
	r := &Ring{now: time.Now, random: random}
	first, err := (&ringState{period: period, lifetime: lifetime}).rotated(time.Now(), random)
	if err != nil {
		return nil, fmt.Errorf("session: no random bytes for a ticket key: %w", err)
	}
	r.state.Store(first)
	return r, nil
}

// Set replaces the keys of the ring. It returns an error in the same cases as [NewRing], and then
// the ring stays as it is. A ring that rotates by itself stops rotating.
func (r *Ring) Set(keys ...TicketKey) error {
	if len(keys) == 0 {
		return errNoKeys
	}
	names := make(map[[16]byte]bool, len(keys))
	own := make([]TicketKey, len(keys))
	for i, k := range keys {
		if err := k.check(); err != nil {
			return err
		}
		if names[k.Name] {
			return fmt.Errorf("session: duplicate %v", k)
		}
		names[k.Name] = true
		own[i] = k.clone()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := &ringState{keys: own, generation: generations.Add(1), since: time.Now()}
	if before := r.state.Load(); before != nil && len(before.keys) > 0 && before.keys[0].Name == own[0].Name {
		next.since = before.since
	}
	r.state.Store(next)
	return nil
}

// Clear removes all keys from the ring: no tickets are sealed or opened until Set. A ring that
// rotates by itself stops rotating.
func (r *Ring) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Store(&ringState{generation: generations.Add(1)})
}

// Snapshot returns the keys and their generation. The first key seals. The generation is a number
// that changes whenever the keys change; no other list of keys in the process has the same one.
// Snapshot costs an atomic load, and a look at the clock if the ring rotates; it allocates nothing
// unless keys change. The keys are shared and must not be changed. A zero or cleared ring has none.
func (r *Ring) Snapshot() (keys []TicketKey, generation uint64) {
	s := r.state.Load()
	if s == nil {
		return nil, 0
	}
	if s.created != nil && s.due(r.now()) {
		s = r.rotate()
	}
	return s.keys, s.generation
}

// SealingSince returns when the key that seals began to seal in this process: when Set first had it
// in the first place, or when the ring made it. It is the zero time if there is no key.
func (r *Ring) SealingSince() time.Time {
	r.Snapshot() // which may rotate
	if s := r.state.Load(); s != nil {
		return s.since
	}
	return time.Time{}
}

// Generation returns only the number that Snapshot returns.
func (r *Ring) Generation() uint64 {
	_, generation := r.Snapshot()
	return generation
}

// rotate makes a key if that is still due, and drops the keys that are too old.
func (r *Ring) rotate() *ringState {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state.Load()
	if now := r.now(); s.created != nil && s.due(now) { // if not, Set or another rotation came first
		if next, err := s.rotated(now, r.random); err == nil {
			s = next
			r.state.Store(s)
		} else if kept := s.unexpired(now); len(kept.keys) < len(s.keys) {
			s = kept
			r.state.Store(s)
		}
	}
	return s
}

// due reports whether a key has to be made or dropped. The first key is the youngest.
func (s *ringState) due(now time.Time) bool {
	return len(s.created) == 0 || age(now, s.created[0]) >= s.period || age(now, s.created[len(s.created)-1]) >= s.lifetime
}

// rotated returns the state that follows s.
func (s *ringState) rotated(now time.Time, random io.Reader) (*ringState, error) {
	next := s.unexpired(now)
	if len(s.keys) == 0 || age(now, s.created[0]) >= s.period {
		key, err := ticketKeyFrom(random)
		if err != nil {
			return nil, err
		}
		next.keys = append([]TicketKey{key}, next.keys...)
		next.created = append([]time.Time{now}, next.created...)
		next.since = now
	}
	return next, nil
}

// unexpired returns s without the keys that are too old. If no key is left, the result is due at
// once.
func (s *ringState) unexpired(now time.Time) *ringState {
	next := &ringState{generation: generations.Add(1), since: s.since, period: s.period, lifetime: s.lifetime}
	next.created = []time.Time{} // not nil: the ring rotates
	for i, k := range s.keys {
		if age(now, s.created[i]) < s.lifetime {
			next.keys = append(next.keys, k)
			next.created = append(next.created, s.created[i])
		}
	}
	return next
}

// age returns the age of a key by the wall clock or by the monotonic one, whichever is greater: a
// wall clock that is set back doesn't stop rotation, nor does a monotonic one that stood still
// while the machine slept.
func age(now, created time.Time) time.Duration {
	return max(now.Sub(created), now.Round(0).Sub(created.Round(0)))
}

// String reports how many keys there are.
func (r *Ring) String() string {
	keys, generation := r.Snapshot()
	return fmt.Sprintf("ring of %d ticket keys, generation %d", len(keys), generation)
}

// Format implements [fmt.Formatter]; no verb prints a key.
func (r *Ring) Format(s fmt.State, verb rune) {
	if r == nil {
		io.WriteString(s, "<nil>")
		return
	}
	io.WriteString(s, r.String())
}
