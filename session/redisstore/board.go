package redisstore

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// A redisBoard is the board in Redis. A record and its lease are in the same slot of a cluster,
// since the braces in their keys hold the same text.
type redisBoard struct {
	client  redis.UniversalClient
	prefix  string
	timeout time.Duration
	slots   chan struct{} // one for each call under way, including those that were given up
}

func (b *redisBoard) names(name []byte) (record, lease string) {
	base := b.prefix + "{keys:" + base64.RawURLEncoding.EncodeToString(name) + "}:"
	return base + "record", base + "lease"
}

// bounded runs f for at most the timeout, even if f ignores its context.
func (b *redisBoard) bounded(ctx context.Context, f func(context.Context) error) error {
	select {
	case b.slots <- struct{}{}:
	default:
		return errBusy
	}
	_, err := within(ctx, b.timeout, func(ctx context.Context) ([]byte, error) { return nil, f(ctx) }, func() { <-b.slots })
	return err
}

func (b *redisBoard) read(ctx context.Context, names [][]byte) ([][]byte, time.Time, error) {
	type answer struct {
		records [][]byte
		now     time.Time
	}
	answers := make(chan answer, 1) // f may still run after it was given up
	err := b.bounded(ctx, func(ctx context.Context) error {
		var a answer
		for _, name := range names {
			key, _ := b.names(name)
			record, err := b.client.Get(ctx, key).Bytes()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			a.records = append(a.records, record)
		}
		var err error
		a.now, err = b.client.Time(ctx).Result()
		if err == nil {
			answers <- a
		}
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	a := <-answers
	return a.records, a.now, nil
}

func (b *redisBoard) lease(ctx context.Context, name []byte, token string, ttl time.Duration) (bool, error) {
	_, key := b.names(name)
	got := make(chan bool, 1)
	err := b.bounded(ctx, func(ctx context.Context) error {
		ok, err := b.client.SetNX(ctx, key, token, ttl).Result()
		got <- ok
		return err
	})
	if err != nil {
		return false, err
	}
	return <-got, nil
}

// errNotOurs aborts a transaction whose conditions no longer hold.
var errNotOurs = errors.New("redisstore: another member has published")

func (b *redisBoard) publish(
	ctx context.Context, name []byte, token string, old, record []byte, ttl time.Duration,
) (bool, error) {
	key, lease := b.names(name)
	err := b.bounded(ctx, func(ctx context.Context) error {
		return b.client.Watch(ctx, func(tx *redis.Tx) error {
			holder, err := tx.Get(ctx, lease).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			there, err := tx.Get(ctx, key).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			if holder != token || there != string(old) {
				return errNotOurs
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, key, record, ttl)
				p.Del(ctx, lease)
				return nil
			})
			return err
		}, key, lease)
	})
	if errors.Is(err, errNotOurs) || errors.Is(err, redis.TxFailedErr) {
		return false, nil
	}
	return err == nil, err
}
