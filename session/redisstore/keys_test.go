package redisstore

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/session"
)

var fleets = flag.Int("fleets", 2, "how many fleets of each kind are simulated; one with -short")

func numberOfFleets() uint64 {
	if testing.Short() {
		return 1
	}
	return uint64(*fleets)
}

// A fakeBoard is a store for all members of a simulated fleet.
type fakeBoard struct {
	now       time.Time
	records   map[string][]byte
	leases    map[string]fakeLease
	published int
}

type fakeLease struct {
	token string
	until time.Time
}

var errDown = errors.New("the store can't be reached")

// A memberBoard is a member's access to the board, with injected faults.
type memberBoard struct {
	*fakeBoard
	down   bool
	random *rand.Rand // if set, cuts connections at random
}

// cut reports whether the connection breaks now.
func (b *memberBoard) cut() bool { return b.down || b.random != nil && b.random.IntN(4) == 0 }

func (b *memberBoard) read(_ context.Context, names [][]byte) ([][]byte, time.Time, error) {
	if b.cut() {
		return nil, time.Time{}, errDown
	}
	var records [][]byte
	for _, name := range names {
		records = append(records, bytes.Clone(b.records[string(name)]))
	}
	return records, b.now, nil
}

func (b *memberBoard) lease(_ context.Context, name []byte, token string, ttl time.Duration) (bool, error) {
	if b.cut() {
		return false, errDown
	}
	if l, held := b.leases[string(name)]; held && l.until.After(b.now) {
		return false, nil
	}
	b.leases[string(name)] = fakeLease{token, b.now.Add(ttl)}
	if b.cut() { // the answer is lost
		return false, errDown
	}
	return true, nil
}

func (b *memberBoard) publish(_ context.Context, name []byte, token string, old, record []byte, _ time.Duration) (bool, error) {
	if b.cut() {
		return false, errDown
	}
	l := b.leases[string(name)]
	if l.token != token || !l.until.After(b.now) || !bytes.Equal(b.records[string(name)], old) {
		return false, nil
	}
	b.records[string(name)] = bytes.Clone(record)
	delete(b.leases, string(name))
	b.published++
	if b.cut() {
		return false, errDown
	}
	return true, nil
}

// A fleet is a number of members on one clock.
type fleet struct {
	t       *testing.T
	config  KeysConfig
	board   *fakeBoard
	now     time.Time
	members []*member
	all     map[[16]byte]*sharedKey // every key ever seen
	sealed  map[[16]byte]time.Time  // the last time that a member sealed with it
}

type member struct {
	*Keys
	net      *memberBoard
	offset   time.Duration // of its clock
	nextPoll time.Time
	lastSync time.Time
}

func newFleet(t *testing.T, n int, config KeysConfig) *fleet {
	t.Helper()
	f := &fleet{
		t: t, config: config, now: time.UnixMilli(1_800_000_000_000),
		board:  &fakeBoard{records: map[string][]byte{}, leases: map[string]fakeLease{}},
		all:    map[[16]byte]*sharedKey{},
		sealed: map[[16]byte]time.Time{},
	}
	f.board.now = f.now
	for range n {
		f.members = append(f.members, f.newMember(0))
	}
	f.config = f.members[0].config
	return f
}

func (f *fleet) newMember(offset time.Duration) *member {
	f.t.Helper()
	m := &member{net: &memberBoard{fakeBoard: f.board}, offset: offset, nextPoll: f.now}
	var err error
	m.Keys, err = newKeys(f.config, func(KeysConfig) board { return m.net }, func() time.Time { return f.now.Add(m.offset) })
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// step moves the clock, has the members poll whose time has come, in random order, and has the
// others apply the time.
func (f *fleet) step(d time.Duration, random *rand.Rand) {
	f.now = f.now.Add(d)
	f.board.now = f.now
	for _, i := range random.Perm(len(f.members)) {
		m := f.members[i]
		if m.nextPoll.After(f.now) {
			m.apply()
			continue
		}
		if m.Sync(context.Background()) == nil {
			m.lastSync = f.now
		}
		poll := int64(f.config.Poll)
		m.nextPoll = f.now.Add(time.Duration(poll*4/5 + random.Int64N(poll*2/5)))
	}
	for _, m := range f.members {
		for name, k := range m.known {
			f.all[name] = k.sharedKey
		}
	}
}

func (m *member) has(name [16]byte) bool {
	keys, _ := m.ring.Snapshot()
	for _, k := range keys {
		if k.Name == name {
			return true
		}
	}
	return false
}

// seals returns the key that a member seals with.
func (m *member) seals() (name [16]byte, ok bool) {
	keys, _ := m.ring.Snapshot()
	if len(keys) == 0 {
		return name, false
	}
	return keys[0].Name, true
}

// check checks the invariants. kept means that the store has never lost data.
func (f *fleet) check(kept bool) {
	f.t.Helper()
	for i, m := range f.members {
		name, ok := m.seals()
		if !ok {
			continue
		}
		k, now := f.all[name], f.now.Add(m.offset)
		if now.Before(k.sealFrom) || !now.Before(k.sealUntil) {
			f.t.Fatalf("member %d seals with %v at %v, which it may from %v to %v", i, k, now, k.sealFrom, k.sealUntil)
		}
		if !m.known[name].confirmed {
			f.t.Fatalf("member %d seals with %v, which it has not found in the store in time", i, k)
		}
		f.sealed[name] = f.now
	}
	if !kept {
		return
	}
	for name, last := range f.sealed {
		k := f.all[name]
		if !f.now.Before(last.Add(k.lifetime)) {
			delete(f.sealed, name)
		}
		for i, m := range f.members {
			// A member that was cut off still seals when the successor's time has come: others keep
			// the key for its Lifetime from then on.
			until := last.Add(k.lifetime)
			for _, other := range m.known {
				if t := other.sealFrom.Add(k.lifetime); other.confirmed && other.sealFrom.After(k.sealFrom) && t.Before(until) {
					until = t
				}
			}
			if last.Equal(f.now) { // a ticket sealed now can be opened now
				until = f.now.Add(1)
			}
			inStep := f.now.Sub(m.lastSync) < 2*f.config.Poll || m.lastSync.After(k.published)
			if _, ok := m.seals(); ok && f.now.Before(until) && inStep && !m.has(name) {
				f.t.Fatalf("at %v member %d can't open what was sealed with %v at %v", f.now, i, k, last)
			}
		}
	}
}

// converge repairs everything and has the members poll until all must agree.
func (f *fleet) converge(random *rand.Rand, kept bool) {
	f.t.Helper()
	for _, m := range f.members {
		m.net.down, m.net.random = false, nil
	}
	for until := f.now.Add(f.config.Period + 4*f.config.Lead); f.now.Before(until); {
		f.step(f.config.Poll/2, random)
		f.check(kept)
	}
	// Members switch in the same step: their clocks are the same.
	first, ok := f.members[0].seals()
	for i, m := range f.members {
		if name, has := m.seals(); !ok || has != ok || name != first {
			f.t.Fatalf("member %d seals with %x (%v), member 0 with %x (%v)", i, name, has, first, ok)
		}
	}
}

var simulated = KeysConfig{
	Secrets: []session.Secret{{1}},
	Period:  time.Hour, Lifetime: 3 * time.Hour, Poll: time.Minute, Lead: 5 * time.Minute, Timeout: time.Second,
}

// TestKeysFleet is a fleet without faults: every member gets tickets after the first lead, one key
// is made for each period, and old ones go when their tickets have expired.
func TestKeysFleet(t *testing.T) {
	for seed := range numberOfFleets() {
		random := rand.New(rand.NewPCG(seed, 3))
		f := newFleet(t, 1+int(seed)%6, simulated)
		start := f.now
		for f.now.Before(start.Add(24 * time.Hour)) {
			f.step(time.Duration(random.Int64N(int64(time.Minute))), random)
			f.check(true)
			for i, m := range f.members {
				name, ok := m.seals()
				if !ok && f.now.After(start.Add(8*time.Minute)) {
					t.Fatalf("member %d has no key at %v", i, f.now.Sub(start))
				}
				if ok && f.now.Sub(f.all[name].sealFrom) > f.config.Period {
					t.Fatalf("member %d seals with a key of %v", i, f.now.Sub(f.all[name].sealFrom))
				}
				if keys, _ := m.ring.Snapshot(); len(keys) > 3+2 {
					t.Fatalf("member %d has %d keys", i, len(keys))
				}
			}
		}
		if n := len(f.all); n < 24 || n > 26 {
			t.Errorf("%d keys were made in 24 periods", n)
		}
	}
}

// TestKeysFaults is a fleet whose members lose the store one by one and all together, whose calls
// fail before and after they took effect, and whose members restart.
func TestKeysFaults(t *testing.T) {
	steps := 3000
	if testing.Short() {
		steps = 1000 // each fault happens several times
	}
	for seed := range numberOfFleets() {
		random := rand.New(rand.NewPCG(seed, 4))
		f := newFleet(t, 2+int(seed)%4, simulated)
		for range steps {
			f.step(time.Duration(random.Int64N(int64(2*time.Minute))), random)
			f.check(true)
			i := random.IntN(len(f.members))
			m := f.members[i]
			switch random.IntN(200) {
			case 0, 1:
				m.net.down = !m.net.down
			case 2:
				down := random.IntN(2) == 0
				for _, m := range f.members {
					m.net.down = down
				}
			case 3:
				m.net.random = nil
				if random.IntN(2) == 0 {
					m.net.random = random
				}
			case 4:
				f.members[i] = f.newMember(0)
			case 5:
				for range 60 * (1 + random.IntN(6)) { // hours
					f.step(time.Minute, random)
					f.check(true)
				}
			}
		}
		f.converge(random, true)
		if n, most := len(f.all), 2+int(f.now.Sub(time.UnixMilli(1_800_000_000_000))/f.config.Period); n > most {
			t.Errorf("seed %d: %d keys were made in %d periods", seed, n, most-2)
		}
	}
}

// TestKeysLostByStore is a fleet whose store loses its data or reverts to an older state, whose
// members' clocks differ, and whose members all restart now and then.
func TestKeysLostByStore(t *testing.T) {
	for seed := range numberOfFleets() {
		random := rand.New(rand.NewPCG(seed, 5))
		f := newFleet(t, 3, simulated)
		for _, m := range f.members {
			m.offset = time.Duration(random.Int64N(int64(time.Minute))) - 30*time.Second
		}
		var backup map[string][]byte
		for range 2000 {
			f.step(time.Duration(random.Int64N(int64(2*time.Minute))), random)
			f.check(false)
			switch random.IntN(100) {
			case 0:
				clear(f.board.records)
			case 1:
				backup = map[string][]byte{}
				for name, record := range f.board.records {
					backup[name] = bytes.Clone(record)
				}
			case 2:
				if backup != nil {
					f.board.records = backup
					backup = nil
				}
			case 3:
				for name := range f.board.records {
					f.board.records[name] = []byte("junk")
				}
			case 4:
				i := random.IntN(3)
				f.members[i] = f.newMember(f.members[i].offset)
			}
		}
		for _, m := range f.members {
			m.offset = 0
		}
		f.converge(random, false)
	}
}

// TestKeysRestored: a store that has lost its data gets the keys back, and tickets keep being
// opened everywhere.
func TestKeysRestored(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	f := newFleet(t, 3, simulated)
	for range 20 {
		f.step(time.Minute, random)
	}
	name, ok := f.members[0].seals()
	if !ok {
		t.Fatal("no key")
	}
	clear(f.board.records)
	for range 3 {
		f.step(time.Minute, random)
	}
	newcomer := f.newMember(0)
	if err := newcomer.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, ok := newcomer.seals(); !ok || got != name {
		t.Errorf("the newcomer seals with %x, the fleet with %x", got, name)
	}
	restored := uint64(0)
	for _, m := range f.members {
		restored += m.Stats().Restored
	}
	if restored != 1 {
		t.Errorf("restored %d times", restored)
	}
}

// TestKeysUnconfirmed: the store goes down, or loses its data and then goes down, right after a key
// was published. Members that have seen the key open with it, but continue to seal with the
// previous one, which all members have.
func TestKeysUnconfirmed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 7))
	f := newFleet(t, 2, simulated)
	for range 20 {
		f.step(time.Minute, random)
	}
	first, ok := f.members[0].seals()
	if !ok {
		t.Fatal("no key")
	}
	f.members[1].net.down = true
	for len(f.all) == 1 {
		f.step(10*time.Second, random)
	}
	f.members[0].net.down = true // has published the second key, and read it
	for range 120 {
		f.step(time.Minute, random)
		for i, m := range f.members {
			if name, ok := m.seals(); !ok || name != first {
				t.Fatalf("member %d seals with %x, %v; want %x", i, name, ok, first)
			}
		}
		if keys, _ := f.members[0].ring.Snapshot(); len(keys) != 2 {
			t.Fatalf("%d keys open", len(keys))
		}
	}
	f.converge(random, true)
	if name, _ := f.members[0].seals(); name == first {
		t.Error("no rotation when the store was back")
	}
}

// TestKeysLead: every key was in the store for at least Lead before it seals.
func TestKeysLead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 8))
	f := newFleet(t, 3, simulated)
	for range 600 {
		f.step(time.Minute, random)
	}
	if len(f.all) < 9 {
		t.Errorf("%d keys", len(f.all))
	}
	for _, k := range f.all {
		if d := k.sealFrom.Sub(k.published); d < f.config.Lead || d > f.config.Lead+3*f.config.Poll {
			t.Errorf("%v between publication and use", d)
		}
	}
}

// TestKeysFromTheFuture: a key made with a wrong clock doesn't keep the fleet from making others.
func TestKeysFromTheFuture(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	f := newFleet(t, 2, simulated)
	m := f.members[0]
	future := f.now.Add(365 * 24 * time.Hour)
	bad := m.make(nil, future)
	f.board.records[string(m.sealer.Names([]byte(recordID))[0])] =
		m.sealer.Seal([]byte(recordID), encodeRecord([]*sharedKey{bad}), bad.openUntil())
	f.converge(random, true)
	if len(f.all) == 0 || f.all[bad.Name] != nil {
		t.Errorf("%d keys, the bad one: %v", len(f.all), f.all[bad.Name])
	}
}

// TestKeysStoreGone: without the store, the last key goes on sealing for a time, and then no
// tickets are sealed.
func TestKeysStoreGone(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	f := newFleet(t, 2, simulated)
	for range 20 {
		f.step(time.Minute, random)
	}
	name, _ := f.members[0].seals()
	for _, m := range f.members {
		m.net.down = true
	}
	end := f.all[name].sealUntil
	if want := f.all[name].sealFrom.Add(f.config.Period + f.config.Lifetime); !end.Equal(want) {
		t.Errorf("%v, want %v", end, want)
	}
	for f.now.Before(end.Add(-2 * time.Minute)) {
		f.step(time.Minute, random)
		for i, m := range f.members {
			if got, ok := m.seals(); !ok || got != name {
				t.Fatalf("at %v member %d seals with %x, %v", f.now, i, got, ok)
			}
		}
	}
	if s := f.members[0].Stats(); s.LastError == nil || s.Failures == 0 || s.Keys != 1 {
		t.Errorf("%+v", s)
	}
	f.step(3*time.Minute, random)
	for i, m := range f.members {
		if _, ok := m.seals(); ok {
			t.Errorf("member %d still seals", i)
		}
	}
	f.converge(random, true)
}

// TestKeysClockWrong: a member whose clock is wrong publishes nothing, and doesn't keep others from
// publishing.
func TestKeysClockWrong(t *testing.T) {
	for _, offset := range []time.Duration{-365 * 24 * time.Hour, -2 * time.Minute, 2 * time.Minute, 365 * 24 * time.Hour} {
		t.Run(offset.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 3))
			f := newFleet(t, 1, simulated)
			f.members[0].offset = offset
			for range 100 {
				f.step(time.Minute, random)
			}
			if f.board.published != 0 || f.members[0].Stats().LastError == nil {
				t.Errorf("published %d times, %v", f.board.published, f.members[0].Stats().LastError)
			}
			f.members = append(f.members, f.newMember(0), f.newMember(0))
			for range 20 {
				f.step(time.Minute, random)
			}
			a, ok := f.members[1].seals()
			if b, _ := f.members[2].seals(); !ok || a != b {
				t.Error("the others don't agree")
			}
		})
	}
}

// TestKeysSecretChanged changes the fleet's secret member by member; keys stay.
func TestKeysSecretChanged(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 4))
	f := newFleet(t, 3, simulated)
	for range 20 {
		f.step(time.Minute, random)
	}
	name, _ := f.members[0].seals()
	for _, secrets := range [][]session.Secret{{{1}, {2}}, {{2}, {1}}, {{2}}} {
		f.config.Secrets = secrets
		for i := range f.members {
			f.members[i] = f.newMember(0) // it restarts without state
			for range 3 {
				f.step(time.Minute, random)
			}
			for i, m := range f.members {
				if got, ok := m.seals(); !ok || got != name {
					t.Fatalf("with %d secrets member %d seals with %x, %v; want %x", len(secrets), i, got, ok, name)
				}
			}
		}
	}
	if len(f.all) != 1 {
		t.Errorf("%d keys", len(f.all))
	}
}

// TestKeysNewerVersion: a record of a newer version is neither used nor overwritten.
func TestKeysNewerVersion(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	f := newFleet(t, 2, simulated)
	for range 20 {
		f.step(time.Minute, random)
	}
	name, _ := f.members[0].seals()
	m := f.members[0]
	store := string(m.sealer.Names([]byte(recordID))[0])
	newer := m.sealer.Seal([]byte(recordID), []byte(`{"v":2,"something":"else"}`), f.now.Add(100*time.Hour))
	f.board.records[store] = newer
	for range 120 {
		f.step(time.Minute, random)
	}
	if !bytes.Equal(f.board.records[store], newer) {
		t.Error("the record was overwritten")
	}
	if got, ok := m.seals(); !ok || got != name || !errors.Is(m.Stats().LastError, errNewerRecord) {
		t.Errorf("%x, %v, %v", got, ok, m.Stats().LastError)
	}
}

// TestKeysShowNothing: the store sees no key in the clear, and no formatting prints one.
func TestKeysShowNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 6))
	f := newFleet(t, 1, simulated)
	for range 20 {
		f.step(time.Minute, random)
	}
	keys, _ := f.members[0].ring.Snapshot()
	for name, record := range f.board.records {
		for _, secret := range [][]byte{keys[0].Name[:], keys[0].Cipher[:8], keys[0].MAC[:8], []byte(recordID), []byte("cipher")} {
			if bytes.Contains(record, secret) || strings.Contains(name, string(secret)) {
				t.Errorf("the store sees %x", secret)
			}
		}
	}
	k := f.members[0].Keys
	printed := fmt.Sprintf("%v %+v %#v %s %x %v", k, k, k, k, k, k.config)
	if strings.Contains(printed, fmt.Sprintf("%x", keys[0].Cipher[:4])) || strings.Contains(printed, "[1 0 0 0") {
		t.Error(printed)
	}
}

func FuzzRecord(f *testing.F) {
	now := time.UnixMilli(1_800_000_000_000)
	k := &sharedKey{session.NewTicketKey(), now, now.Add(time.Hour), now.Add(2 * time.Hour), time.Hour}
	f.Add(encodeRecord([]*sharedKey{k}))
	f.Add(encodeRecord([]*sharedKey{k, k}))
	f.Add(encodeRecord(nil))
	f.Add([]byte(`{"v":2}`))
	f.Add([]byte(`{"v":1,"keys":[{"name":"AAAA"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := decodeRecord(encodeRecord(keys))
		if err != nil || len(again) != len(keys) {
			t.Fatalf("%s: %v", b, err)
		}
		for i, k := range keys {
			o := again[i]
			if o.Name != k.Name || !bytes.Equal(o.Cipher, k.Cipher) || !bytes.Equal(o.MAC, k.MAC) || !o.published.Equal(k.published) ||
				!o.sealFrom.Equal(k.sealFrom) || !o.sealUntil.Equal(k.sealUntil) || o.lifetime != k.lifetime {
				t.Fatalf("%s: %v became %v", b, k, o)
			}
			if k.confirmFrom().Before(k.published) || k.confirmFrom().After(k.sealFrom) || !k.openUntil().After(k.sealUntil) {
				t.Fatalf("%s: %v", b, k)
			}
		}
	})
}
