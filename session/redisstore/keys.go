package redisstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl/session"
)

// Keys holds the ring of a member of a fleet in step with those of the others: each opens what any of them seals.
//
// A key goes through these states, at times that are published with it and the same for all members:
//
//	published ─ Lead/2 ─ confirmed ─ Lead/2 ─ seals ─ Period ─ succeeded ─ Lifetime ─ dropped
//
// Published: one member, who holds a lease, has put the key into the store, sealed under the fleet's secret. Members find it
// there when they poll, and open with it from then on. Nobody takes over a key that he hasn't read in the store, its maker
// neither.
//
// Confirmed: a member has found it in the store in the second half of Lead, or later: whoever reached the store in the first
// half has it too. A key that is gone from the store by then, because the store lost it or went down, is confirmed by no
// member.
//
// Seals: the newest confirmed key whose time has come. The next is published Lead before its Period ends. If that fails,
// because the store is down, the key goes on for up to Lifetime more; then the ring is cleared, and no tickets are given out
// until the store is back: other members may have dropped the key by then.
//
// Dropped: Lifetime after a confirmed successor began to seal, when the last ticket has expired.
//
// A member that can't reach the store goes on with what it has. A store that has lost its data gets it back from the first
// member that looks. A member whose clock differs from the store's by more than a quarter of Lead publishes nothing. Whatever
// fails costs full handshakes: tickets that don't open.
type Keys struct {
	config KeysConfig
	board  board
	sealer *session.Sealer
	ring   *session.Ring
	now    func() time.Time

	mu       sync.Mutex // one look at the store at a time
	known    map[[16]byte]*memberKey
	inRing   []([16]byte) // the names in the ring, in order
	counting sync.Mutex   // guards stats
	stats    KeysStats
}

// A memberKey is a key with what a member knows of it.
type memberKey struct {
	*sharedKey
	confirmed bool
}

// KeysStats is a snapshot of what a [Keys] has done.
type KeysStats struct {
	Syncs     uint64    // looks at the store that succeeded
	Failures  uint64    // and that didn't
	Published uint64    // keys made by this member
	Restored  uint64    // times that this member gave the store keys back
	Keys      int       // in the ring
	SealFrom  time.Time // when the key that seals began to; zero if none does
	LastSync  time.Time // when the store was reached last
	LastError error     // of the last look; nil if it succeeded
}

// A board is where members publish: the store, or a test's.
type board interface {
	// read returns the record under each name, nil where there is none, and the store's clock.
	read(ctx context.Context, names [][]byte) (records [][]byte, now time.Time, err error)

	// lease reserves the right to publish under a name for a time, unless another member has it.
	lease(ctx context.Context, name []byte, token string, ttl time.Duration) (bool, error)

	// publish replaces the record old, nil for none, if it is still there and the lease is still the token's, and ends the lease.
	publish(ctx context.Context, name []byte, token string, old, record []byte, ttl time.Duration) (bool, error)
}

// recordID is what the record is called before its name is hashed, and bound to.
const recordID = "ticket keys"

// NewKeys returns Keys whose ring is empty: [Keys.Sync] fills it, [Keys.Run] holds it in step. It connects to nothing yet. The
// client stays the caller's.
func NewKeys(client redis.UniversalClient, config KeysConfig) (*Keys, error) {
	open := func(c KeysConfig) board { return &redisBoard{client, c.Prefix, c.Timeout, make(chan struct{}, 8)} }
	return newKeys(config, open, time.Now)
}

func newKeys(config KeysConfig, open func(KeysConfig) board, now func() time.Time) (*Keys, error) {
	c, err := config.resolve()
	if err != nil {
		return nil, err
	}
	sealer, err := session.NewSealer("redisstore ticket keys", c.Secrets...)
	if err != nil {
		return nil, err
	}
	return &Keys{
		config: c,
		board:  open(c),
		sealer: sealer,
		ring:   new(session.Ring),
		now:    now,
		known:  map[[16]byte]*memberKey{},
	}, nil
}

// Ring returns the ring. It has no key before the store was reached, nor as long as the first key of a fleet is younger than
// Lead: no tickets are sealed and none are opened meanwhile. A ring can't open without a key that seals, so members whose clocks
// are behind don't open the first tickets of all; with later keys every member opens before any seals.
func (k *Keys) Ring() *session.Ring { return k.ring }

// Run holds the ring in step until ctx is done, whose error it returns.
func (k *Keys) Run(ctx context.Context) error {
	for {
		k.Sync(ctx) // what fails is in Stats, and is tried again
		for poll := k.now().Add(jitter(k.config.Poll)); ; {
			wait := poll.Sub(k.now())
			if wait <= 0 {
				break
			}
			timer := time.NewTimer(min(wait, k.untilChange()))
			select {
			case <-timer.C:
				k.apply()
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			}
		}
	}
}

// Sync looks at the store once, publishes a key if it is time for one, and brings the ring up to date, which it does as well if
// the store can't be reached. Servers call it before they begin to serve; then they leave it to Run.
func (k *Keys) Sync(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	published, err := k.look(ctx)
	if err == nil && published { // our own keys are taken over as others' are
		_, err = k.look(ctx)
	}
	k.applyLocked()
	k.counting.Lock()
	defer k.counting.Unlock()
	k.stats.LastError = err
	if err != nil {
		k.stats.Failures++
	} else {
		k.stats.Syncs++
		k.stats.LastSync = k.now()
	}
	return err
}

// look reads what is published, takes it over, and publishes what is missing.
func (k *Keys) look(ctx context.Context) (published bool, err error) {
	before := k.now()
	names := k.sealer.Names([]byte(recordID))
	records, theirs, err := k.board.read(ctx, names)
	if err != nil {
		return false, err
	}
	after := k.now()
	there := map[[16]byte]bool{} // under the first name, where this member publishes
	for i, sealed := range records {
		if sealed == nil {
			continue
		}
		keys, e := k.open(sealed, before)
		if e != nil {
			err = e
			continue
		}
		for _, key := range keys {
			k.take(key, before)
			if i == 0 {
				there[key.Name] = true
			}
		}
	}
	k.drop(before)
	if err == errNewerRecord {
		return false, err
	}

	union := make([]*sharedKey, 0, len(k.known)+1)
	missing := false
	for _, key := range k.known {
		union = append(union, key.sharedKey)
		missing = missing || !there[key.Name]
	}
	newestFirst(union)
	// Two polls early, so that the successor's time is the end of the period.
	fresh := len(union) == 0 || !before.Before(union[0].sealFrom.Add(k.config.Period-k.config.Lead-2*k.config.Poll))
	if !fresh && !missing {
		return false, err
	}
	if skew := max(theirs.Sub(after), before.Sub(theirs)); skew > k.config.Lead/4 {
		return false, fmt.Errorf("redisstore: this machine's clock and the store's are %v apart: no ticket key is published", skew)
	}
	token := rand.Text()
	if ok, err := k.board.lease(ctx, names[0], token, 4*k.config.Timeout); err != nil || !ok {
		return false, err // another member is at it
	}
	if fresh {
		union = append([]*sharedKey{k.make(union, before)}, union...)
	}
	union = union[:min(len(union), maxKeys)]
	until := before
	for _, key := range union {
		if t := key.openUntil(); t.After(until) {
			until = t
		}
	}
	plain := encodeRecord(union)
	defer clear(plain)
	sealed := k.sealer.Seal([]byte(recordID), plain, until)
	ok, err := k.board.publish(ctx, names[0], token, records[0], sealed, until.Sub(before))
	if err != nil || !ok {
		return false, err // another member was quicker
	}
	k.counting.Lock()
	defer k.counting.Unlock()
	if fresh {
		k.stats.Published++
	} else {
		k.stats.Restored++
	}
	return true, nil
}

// make makes the successor of the first of keys.
func (k *Keys) make(keys []*sharedKey, now time.Time) *sharedKey {
	key := &sharedKey{
		TicketKey: session.NewTicketKey(),
		published: now,
		sealFrom:  now.Add(k.config.Lead),
		lifetime:  k.config.Lifetime,
	}
	if len(keys) > 0 {
		if t := keys[0].sealFrom.Add(k.config.Period); t.After(key.sealFrom) {
			key.sealFrom = t
		}
	}
	key.sealUntil = key.sealFrom.Add(k.config.Period + k.config.Lifetime)
	return key
}

// open opens a record. One that has expired is as good as none: it was kept by a store that forgets nothing.
func (k *Keys) open(sealed []byte, now time.Time) ([]*sharedKey, error) {
	plain, expires, err := k.sealer.Open([]byte(recordID), sealed)
	if err != nil {
		return nil, err
	}
	defer clear(plain)
	if !expires.After(now) {
		return nil, nil
	}
	return decodeRecord(plain)
}

// take takes a key over that was in the store at now or later. One from the future was made by a clock that is wrong, and is
// passed over: until its time comes no other would be made.
func (k *Keys) take(key *sharedKey, now time.Time) {
	if key.published.After(now.Add(k.config.Lead)) {
		return
	}
	known := k.known[key.Name]
	if known == nil {
		known = &memberKey{sharedKey: key}
		k.known[key.Name] = known
	}
	known.confirmed = known.confirmed || !now.Before(key.confirmFrom())
}

// drop forgets the keys whose tickets have all expired.
func (k *Keys) drop(now time.Time) {
	for name, key := range k.known {
		if !now.Before(k.openUntil(key)) {
			delete(k.known, name)
		}
	}
}

// openUntil returns when a key is dropped, as far as is known now.
func (k *Keys) openUntil(key *memberKey) time.Time {
	until := key.openUntil()
	for _, other := range k.known {
		if other.confirmed && other.sealFrom.After(key.sealFrom) {
			if t := other.sealFrom.Add(key.lifetime); t.Before(until) {
				until = t
			}
		}
	}
	return until
}

// apply brings the ring up to date with the clock.
func (k *Keys) apply() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.applyLocked()
}

func (k *Keys) applyLocked() {
	now := k.now()
	k.drop(now)
	all := make([]*sharedKey, 0, len(k.known))
	for _, key := range k.known {
		all = append(all, key.sharedKey)
	}
	newestFirst(all)
	var keys []session.TicketKey
	var sealFrom time.Time
	for i, key := range all {
		if k.known[key.Name].confirmed && !now.Before(key.sealFrom) && now.Before(key.sealUntil) {
			keys, sealFrom = append(keys, key.TicketKey), key.sealFrom
			for j, other := range all {
				if j != i {
					keys = append(keys, other.TicketKey)
				}
			}
			break
		}
	}
	names := make([][16]byte, len(keys))
	same := len(keys) == len(k.inRing)
	for i, key := range keys {
		names[i] = key.Name
		same = same && bytes.Equal(names[i][:], k.inRing[i][:])
	}
	k.counting.Lock()
	k.stats.Keys, k.stats.SealFrom = len(keys), sealFrom
	k.counting.Unlock()
	if same {
		return
	}
	k.inRing = names
	if len(keys) == 0 {
		k.ring.Clear()
	} else if err := k.ring.Set(keys...); err != nil {
		panic("redisstore: " + err.Error()) // decodeRecord has checked them
	}
}

// untilChange returns how long the ring stays as it is if nothing is published.
func (k *Keys) untilChange() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	next := k.config.Poll
	for _, key := range k.known {
		for _, t := range []time.Time{key.sealFrom, key.sealUntil, k.openUntil(key)} {
			if d := t.Sub(now); d > 0 && d < next {
				next = d
			}
		}
	}
	return next
}

// Stats returns what has been counted so far.
func (k *Keys) Stats() KeysStats {
	k.counting.Lock()
	defer k.counting.Unlock()
	return k.stats
}

// Format implements [fmt.Formatter]: no verb prints what is inside, among which are keys.
func (k *Keys) Format(f fmt.State, verb rune) { io.WriteString(f, "ticket keys in Redis") }
