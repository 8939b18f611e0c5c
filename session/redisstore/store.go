package redisstore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl/session"
)

// ErrTooLarge is returned for a session of more than 64 KiB.
var ErrTooLarge = errors.New("redisstore: the session is too large")

const maxSession = 1 << 16

// A Store is a [session.Cache] in Redis or Valkey.
//
// Get waits for the store, at most for [Config.Timeout]. Put and Remove never wait: they queue a
// write, which is executed in order within moments, and which this Store's own Gets see at once.
// They return an error if the write was dropped. If the store fails, sessions that wait are
// dropped, and removals are tried again until the store answers.
//
// A Store that is no longer needed should be closed.
type Store struct {
	sealed session.Cache
	raw    *rawStore
}

// New returns a Store that uses client, and doesn't take ownership of it. New doesn't connect yet,
// so that a server can start while the store is down.
func New(client redis.UniversalClient, config Config) (*Store, error) {
	c, err := config.resolve()
	if err != nil {
		return nil, err
	}
	sealer, err := session.NewSealer("redisstore sessions", c.Secrets...)
	if err != nil {
		return nil, err
	}
	raw := &rawStore{client: client, prefix: c.Prefix + "session:", calls: newCaller(c), writes: newQueue(c.Queue)}
	go raw.write(jitter(c.Cooldown))
	return &Store{session.Seal(raw, sealer), raw}, nil
}

// Put queues a session to be kept under id until expires, for seven days at most. It doesn't wait.
func (s *Store) Put(ctx context.Context, id, value []byte, expires time.Time) error {
	if len(value) > maxSession {
		return ErrTooLarge
	}
	return s.sealed.Put(ctx, id, value, expires)
}

// Get returns the session under id, or nil. If the store returns a forged value, the error wraps
// [session.ErrSealed].
func (s *Store) Get(ctx context.Context, id []byte, take bool) ([]byte, error) {
	value, err := s.sealed.Get(ctx, id, take)
	if errors.Is(err, session.ErrSealed) {
		s.raw.forged.Add(1)
	}
	return value, err
}

// Remove queues the removal of a session. It doesn't wait.
func (s *Store) Remove(ctx context.Context, id []byte) error { return s.sealed.Remove(ctx, id) }

// Close writes the queued writes, until ctx is done. Afterwards all calls return [ErrClosed].
func (s *Store) Close(ctx context.Context) error { return s.raw.close(ctx) }

// Stats returns a snapshot of the counts.
func (s *Store) Stats() Stats {
	r := s.raw
	return Stats{
		Hits:         r.hits.Load(),
		Misses:       r.misses.Load(),
		Errors:       r.errors.Load(),
		Timeouts:     r.timeouts.Load(),
		Unavailable:  r.unavailable.Load(),
		Forged:       r.forged.Load(),
		Puts:         r.puts.Load(),
		PutsDropped:  r.putsDropped.Load(),
		Removes:      r.removes.Load(),
		RemovesLost:  r.removesLost.Load(),
		Queued:       r.writes.len(),
		Breaker:      r.calls.breaker.State().String(),
		BreakerOpens: r.calls.opens.Load(),
	}
}

// Format implements [fmt.Formatter]; no verb prints the contents, which include secrets.
func (s *Store) Format(f fmt.State, verb rune) { io.WriteString(f, "sessions in Redis") }

var _ session.Cache = (*Store)(nil)

// A rawStore keeps sealed sessions under the IDs that [session.Seal] makes.
type rawStore struct {
	client redis.UniversalClient
	prefix string
	calls  *caller
	writes *queue
	counters
}

func (r *rawStore) key(id []byte) string { return r.prefix + base64.RawURLEncoding.EncodeToString(id) }

func (r *rawStore) Put(_ context.Context, id, sealed []byte, expires time.Time) error {
	if limit := time.Now().Add(session.MaxTTL); expires.After(limit) {
		expires = limit
	}
	if !expires.After(time.Now()) {
		return r.Remove(context.Background(), id)
	}
	if r.calls.open() {
		r.putsDropped.Add(1)
		r.writes.forgetPut(r.key(id)) // the session that it would have replaced
		return fmt.Errorf("%w: the breaker is open", ErrUnavailable)
	}
	err := r.writes.put(r.key(id), sealed, expires)
	if err != nil {
		r.putsDropped.Add(1)
	}
	return err
}

func (r *rawStore) Remove(_ context.Context, id []byte) error {
	err := r.writes.remove(r.key(id))
	if err != nil {
		r.removesLost.Add(1)
	}
	return err
}

func (r *rawStore) Get(ctx context.Context, id []byte, take bool) ([]byte, error) {
	key := r.key(id)
	value, found, err := r.writes.get(key, take)
	if err == nil && !found {
		value, err = r.calls.do(ctx, func(ctx context.Context) ([]byte, error) {
			if take {
				return r.client.GetDel(ctx, key).Bytes()
			}
			return r.client.Get(ctx, key).Bytes()
		})
		if errors.Is(err, redis.Nil) {
			value, err = nil, nil
		}
	}
	switch {
	case err != nil:
		value = nil
		r.errors.Add(1)
		if errors.Is(err, context.DeadlineExceeded) {
			r.timeouts.Add(1)
		}
		if errors.Is(err, ErrUnavailable) {
			r.unavailable.Add(1)
		}
	case value != nil:
		r.hits.Add(1)
	default:
		r.misses.Add(1)
	}
	return value, err
}
