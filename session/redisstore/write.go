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

	// writeTimeouts is how many timeouts of a call a batch may take. Nobody waits for it but those behind it.
	writeTimeouts = 4
)

// write does what is queued, batch by batch, until the queue is closed and empty or has failed after that. One batch ends before
// the next begins, so that writes of one key stay in order.
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
			continue // of a cluster, the nodes that are there don't wait for one that is gone
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

// do writes a batch. It returns the keys of removals that are to be tried again, and of how many writes the store has said what
// becomes of them.
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
		<-released // the breaker knows of a batch that hangs; what is behind it waits until the client lets go
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
		case answered(result) && !passes(result): // it will not do another time either
			r.removesLost.Add(1)
		default:
			again = append(again, w.key)
		}
	}
	return again, settled
}

// inPart reports whether some of a batch's commands were answered, and others were not: of a cluster, those for a node that is
// gone. Where none was, because the batch never left, commands may have no error of their own.
func inPart(results []redis.Cmder) bool {
	failed := func(c redis.Cmder) bool { return !answered(c.Err()) }
	return slices.ContainsFunc(results, failed) &&
		slices.ContainsFunc(results, func(c redis.Cmder) bool { return !failed(c) })
}

// passes reports whether a store that answers with this error will do what it is asked for when it is asked later: it is
// starting, or another node is taking over.
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

// open reports whether no call is let through now.
func (c *caller) open() bool { return c.breaker.State() == gobreaker.StateOpen }

// close waits until all is written.
func (r *rawStore) close(ctx context.Context) error {
	r.writes.close()
	select {
	case <-r.writes.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("redisstore: %d writes are not done: %w", r.writes.len(), ctx.Err())
	}
}
