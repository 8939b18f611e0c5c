package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

const (
	batchSize = 64

	// writeTimeouts is the number of a call's timeouts that a batch may take. Only the batches
	// behind it wait for it.
	writeTimeouts = 4
)

// write executes the queued writes, batch by batch, until the queue is closed and empty, or closed
// and the store fails. One batch is complete before the next begins, so that writes of one key stay
// in order.
func (r *rawStore) write(pause time.Duration) {
	defer close(r.writes.idle)
	for {
		b := r.writes.next(batchSize)
		if len(b) == 0 {
			select {
			case <-r.writes.wake:
				continue
			case <-r.writes.closing:
			}
			if b = r.writes.next(batchSize); len(b) == 0 {
				return
			}
		}
		again, settled := r.do(b)
		r.writes.done(again)
		if settled > 0 || len(again) == 0 {
			continue // in a cluster, the remaining nodes don't wait for one that is gone
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.writes.closing:
			timer.Stop()
			puts, removes := r.writes.drain()
			r.putsDropped.Add(puts)
			r.removesLost.Add(removes)
			return
		}
	}
}

// do executes a batch. It returns the keys of removals to be tried again, and the number of writes
// that the store has accepted or refused for good.
func (r *rawStore) do(b batch) (again []string, settled int) {
	var results []redis.Cmder
	called, released := false, make(chan struct{})
	_, err := r.calls.breaker.Execute(func() ([]byte, error) {
		called = true
		return within(context.Background(), writeTimeouts*r.calls.timeout, func(ctx context.Context) ([]byte, error) {
			var err error
			results, err = r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
				now := time.Now()
				for _, w := range b {
					if ttl := w.expires.Sub(now); w.value != nil && ttl >= time.Millisecond {
						p.Set(ctx, w.key, w.value, ttl.Truncate(time.Millisecond))
					} else {
						p.Del(ctx, w.key)
					}
				}
				return nil
			})
			if !answered(err) && inPart(results) {
				err = nil // the store is there
			}
			return nil, err
		}, func() { close(released) })
	})
	if called {
		<-released // the breaker counts a batch that hangs; later batches wait until the client returns
	}
	for i, w := range b {
		result := err
		if i < len(results) && answered(err) {
			result = results[i].Err()
		}
		if answered(result) && !passes(result) {
			settled++
		}
		switch {
		case result == nil && w.value != nil:
			r.puts.Add(1)
		case result == nil:
			r.removes.Add(1)
		case w.value != nil:
			r.putsDropped.Add(1)
		case answered(result) && !passes(result): // another attempt would fail too
			r.removesLost.Add(1)
		default:
			again = append(again, w.key)
		}
	}
	return again, settled
}

// inPart reports whether some of a batch's commands were answered and others were not: in a
// cluster, those for a node that is gone. If none was answered, because the batch never left,
// commands may have no error of their own.
func inPart(results []redis.Cmder) bool {
	failed := func(c redis.Cmder) bool { return !answered(c.Err()) }
	return slices.ContainsFunc(results, failed) &&
		slices.ContainsFunc(results, func(c redis.Cmder) bool { return !failed(c) })
}

// passes reports whether a store that replies with this error may succeed later: it is starting, or
// another node is taking over.
func passes(err error) bool {
	var e redis.Error
	if !errors.As(err, &e) {
		return false
	}
	code, _, _ := strings.Cut(e.Error(), " ")
	switch code {
	case "ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOREPLICAS", "READONLY", "TRYAGAIN":
		return true
	}
	return redis.IsMaxClientsError(err)
}

// open reports whether the breaker lets no call through now.
func (c *caller) open() bool { return c.breaker.State() == gobreaker.StateOpen }

// close waits until all writes are done.
func (r *rawStore) close(ctx context.Context) error {
	r.writes.close()
	select {
	case <-r.writes.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("redisstore: %d writes are not done: %w", r.writes.len(), ctx.Err())
	}
}
