package terminator

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ossl-go/ossl/session"
)

// The defaults for ticket keys in memory, as in crypto/tls and in package session.
const (
	defaultKeyPeriod   = 24 * time.Hour
	defaultKeyLifetime = 7 * 24 * time.Hour
)

// ticketKeys are keys that the process makes itself, and hands over at a restart. session's own
// ring of such keys tells nobody how old they are, so the next process could not drop them in time.
type ticketKeys struct {
	ring             *session.Ring
	settings         string        // the settings of sessions, for which the keys were made
	period, lifetime time.Duration // how long a key seals, and how old it gets
	stop             context.CancelFunc
	done             chan struct{}

	mu   sync.Mutex
	keys []agedKey // guarded by mu; the first one seals
}

// An agedKey is a ticket key with the time at which it was made.
type agedKey struct {
	key  session.TicketKey
	made time.Time
}

// newTicketKeys returns keys, the former process's keys among them, that change until stop is called.
// A period or lifetime of 0 means crypto/tls's.
func newTicketKeys(period, lifetime time.Duration, former []agedKey) (*ticketKeys, error) {
	if period == 0 {
		period, lifetime = defaultKeyPeriod, defaultKeyLifetime
	}
	k := &ticketKeys{ring: new(session.Ring), period: period, lifetime: lifetime, done: make(chan struct{}), keys: former}
	if err := k.rotate(time.Now()); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.Background())
	go k.run(ctx)
	return k, nil
}

// run changes the keys. It looks at the clock often, since a machine that slept has a later one.
func (k *ticketKeys) run(ctx context.Context) {
	defer close(k.done)
	ticker := time.NewTicker(min(k.period, time.Minute))
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			_ = k.rotate(now) // Set refuses nothing that it has accepted before, and no new key
		case <-ctx.Done():
			return
		}
	}
}

// rotate puts the keys that are due into effect.
func (k *ticketKeys) rotate(now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := rotated(k.keys, now, k.period, k.lifetime)
	if len(next) == len(k.keys) && next[0].key.Name == k.keys[0].key.Name && k.ring.Generation() != 0 {
		return nil
	}
	var list []session.TicketKey
	for _, a := range next {
		list = append(list, a.key)
	}
	if err := k.ring.Set(list...); err != nil {
		return err
	}
	k.keys = next
	return nil
}

// rotated returns keys without those that are too old, and with a new one in front if that is due.
func rotated(keys []agedKey, now time.Time, period, lifetime time.Duration) (next []agedKey) {
	for _, a := range keys {
		if a.age(now) < lifetime {
			next = append(next, a)
		}
	}
	if len(next) == 0 || next[0].age(now) >= period {
		next = append([]agedKey{{session.NewTicketKey(), now}}, next...)
	}
	return next
}

// age returns the age of a key by the wall clock or by the monotonic one, whichever is greater.
func (a agedKey) age(now time.Time) time.Duration {
	return max(now.Sub(a.made), now.Round(0).Sub(a.made.Round(0)))
}

const (
	keySize   = 80              // name, MAC key and cipher key, as of session.ParseTicketKey
	agedSize  = 8 + keySize     // before it the time, in nanoseconds since 1970
	maxHanded = 4096 * agedSize // of policies with short periods
)

// write writes the keys for the next process.
func (k *ticketKeys) write(w io.Writer) error {
	k.mu.Lock()
	keys := k.keys // which no change writes to
	k.mu.Unlock()
	text := make([]byte, 0, len(keys)*agedSize)
	defer func() { clear(text[:cap(text)]) }()
	for _, a := range keys {
		text = binary.BigEndian.AppendUint64(text, uint64(a.made.UnixNano()))
		text = append(text, a.key.Name[:]...)
		text = append(text, a.key.MAC...)
		text = append(text, a.key.Cipher...)
	}
	_, err := w.Write(text)
	return err
}

// readTicketKeys reads the keys of the former process to the end. Those from the future, before the
// clock was set back, count as new.
func readTicketKeys(r io.Reader, now time.Time) (keys []agedKey, err error) {
	text := make([]byte, maxHanded+1)
	defer clear(text)
	n, err := readFull(r, text)
	if err != nil {
		return nil, err
	}
	if n > maxHanded || n%agedSize != 0 {
		return nil, fmt.Errorf("%d bytes are not a number of ticket keys", n)
	}
	for at := 0; at < n; at += agedSize {
		made := time.Unix(0, int64(binary.BigEndian.Uint64(text[at:])))
		key, err := session.ParseTicketKey(text[at+8 : at+agedSize])
		if err != nil {
			return nil, err
		}
		if made.After(now) {
			made = now
		}
		keys = append(keys, agedKey{key, made})
	}
	return keys, nil
}

// handKeys returns a pipe from which another process can read the keys, and a function that stops the
// writing. The pipe has no name, and its contents go with the processes.
func (k *ticketKeys) handKeys() (theirs *os.File, end func(), err error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = k.write(ours) // a process that doesn't read it has keys of its own, or reports why it exits
		_ = ours.Close()
	}()
	return theirs, func() {
		_ = ours.Close() // this makes the Write fail
		<-done
	}, nil
}
