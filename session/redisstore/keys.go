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

// Keys keeps the ticket keys of one member of a fleet in step with the other members', so that each
// opens the tickets that any of them seals.
//
// A key goes through these states, at times that are published with it and the same for all
// members:
//
//	published ─ Lead/2 ─ confirmed ─ Lead/2 ─ seals ─ Period ─ succeeded ─ Lifetime ─ dropped
//
// Published: one member, which holds a lease, has put the key into the store, sealed under the
// fleet's secret. Members find it there when they poll, and open with it from then on. No member
// uses a key that it hasn't read in the store, not even the member that made it.
//
// Confirmed: a member has found it in the store in the second half of Lead, or later. Then every
// member that reached the store in the first half has the key too. If the key is gone from the
// store by then, because the store lost it or went down, no member confirms it.
//
// Seals: the newest confirmed key whose time has come. Its successor is published Lead before its
// Period is over. If that fails because the store is down, the key goes on sealing for up to
// Lifetime more. Then the ring is cleared, because other members may have dropped the key, and no
// tickets are issued until the store is back.
//
// Dropped: Lifetime after a confirmed successor began to seal, when the last ticket has expired.
//
// A member that can't reach the store continues with the keys it has. If a store has lost its data,
// the first member that polls restores them. A member whose clock differs from the store's by more
// than a quarter of Lead publishes nothing. Any failure costs only full handshakes, for tickets
// that can't be opened.
type Keys struct {
	config KeysConfig
	board  board
	sealer *session.Sealer
	ring   *session.Ring
	now    func() time.Time

	mu       sync.Mutex // one poll of the store at a time
	known    map[[16]byte]*memberKey
	inRing   []([16]byte) // the names in the ring, in order
	counting sync.Mutex   // guards stats
	stats    KeysStats
}

// A memberKey is a key and whether the member has confirmed it.
type memberKey struct {
	*sharedKey
	confirmed bool
}

// KeysStats is a snapshot of the counts and the state of a [Keys].
type KeysStats struct {
	Syncs     uint64    // polls of the store that succeeded
	Failures  uint64    // polls that failed
	Published uint64    // keys made by this member
	Restored  uint64    // times that this member restored keys in the store
	Keys      int       // in the ring
	SealFrom  time.Time // when the key that seals began to seal; zero if none seals
	LastSync  time.Time // the time of the last successful poll
	LastError error     // of the last poll; nil if it succeeded
}

// A board is the place where members publish keys: the store, or a fake in tests.
type board interface {
	// read returns the record under each name, nil if there is none, and the store's time.
	read(ctx context.Context, names [][]byte) (records [][]byte, now time.Time, err error)

	// lease reserves the right to publish under a name for a time, unless another member holds it.
	lease(ctx context.Context, name []byte, token string, ttl time.Duration) (bool, error)

	// publish replaces the record old, nil for none, if it is unchanged and the lease is still held
	// with token, and releases the lease.
	publish(ctx context.Context, name []byte, token string, old, record []byte, ttl time.Duration) (bool, error)
}

// recordID is the ID of the record: its name in the store is a hash of it, and its seal is bound to
// it.
const recordID = "ticket keys"

// NewKeys returns Keys with an empty ring: [Keys.Sync] fills it, and [Keys.Run] keeps it up to
// date. NewKeys doesn't connect yet. It doesn't take ownership of client.
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

// Ring returns the ring. It has no key until the store was reached, nor until the first key of a
// fleet is as old as Lead: until then no tickets are sealed or opened. A ring can't open without a
// key that seals, so members whose clocks are behind can't open a fleet's very first tickets; later
// keys are opened by every member before any seals with them.
func (k *Keys) Ring() *session.Ring { return k.ring }

// Run keeps the ring up to date until ctx is done, and returns ctx's error.
func (k *Keys) Run(ctx context.Context) error {
	for {
		k.Sync(ctx) // failures are in Stats, and tried again
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

// Sync polls the store once, publishes a key if one is due, and brings the ring up to date, even if
// the store can't be reached. Servers call it before they begin to serve, and then leave polling to
// Run.
func (k *Keys) Sync(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	published, err := k.look(ctx)
	if err == nil && published { // a member learns its own keys from the store too
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

// look reads the published keys, remembers them, and publishes those that are missing or due.
func (k *Keys) look(ctx context.Context) (published bool, err error) {
	before := k.now()
	names := k.sealer.Names([]byte(recordID))
	records, theirs, err := k.board.read(ctx, names)
	if err != nil {
		return false, err
	}
	after := k.now()
	there := map[[16]byte]bool{} // the keys under the first name, under which this member publishes
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
	// Two polls early, so that the successor is ready at the end of the period.
	fresh := len(union) == 0 || !before.Before(union[0].sealFrom.Add(k.config.Period-k.config.Lead-2*k.config.Poll))
	if !fresh && !missing {
		return false, err
	}
	if skew := max(theirs.Sub(after), before.Sub(theirs)); skew > k.config.Lead/4 {
		return false, fmt.Errorf("redisstore: this machine's clock and the store's differ by %v: no ticket key was published", skew)
	}
	token := rand.Text()
	if ok, err := k.board.lease(ctx, names[0], token, 4*k.config.Timeout); err != nil || !ok {
		return false, err // another member is publishing
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
		return false, err // another member was faster
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

// make makes the successor of keys[0].
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

// open opens a record. A record that has expired counts as none: the store may not have deleted it.
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

// take remembers a key that was in the store at now or later. It ignores a key from the future,
// which was made with a wrong clock: otherwise no other key would be made until its time comes.
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

// openUntil returns the time at which a key is dropped, by the keys that are known now.
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

// apply updates the ring for the current time.
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

// untilChange returns the time until the ring changes if nothing is published.
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

// Stats returns a snapshot of the counts.
func (k *Keys) Stats() KeysStats {
	k.counting.Lock()
	defer k.counting.Unlock()
	return k.stats
}

// Format implements [fmt.Formatter]; no verb prints the contents, which include keys.
func (k *Keys) Format(f fmt.State, verb rune) { io.WriteString(f, "ticket keys in Redis") }
