package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

var (
	// ErrUnavailable is wrapped by the errors of calls that were not made, because the breaker is
	// open or too many are under way.
	ErrUnavailable = errors.New("redisstore: the store was not called")

	// ErrClosed is returned after Close.
	ErrClosed = errors.New("redisstore: closed")

	errBusy = fmt.Errorf("%w: too many calls are under way", ErrUnavailable)
)

// A caller makes calls that end in time, and makes none that is likely to fail.
type caller struct {
	timeout time.Duration
	slots   chan struct{} // one for each call under way, including those that were given up
	breaker *gobreaker.CircuitBreaker[[]byte]
	opens   atomic.Uint64
}

func newCaller(c Config) *caller {
	caller := &caller{timeout: c.Timeout, slots: make(chan struct{}, c.Concurrency)}
	caller.breaker = gobreaker.NewCircuitBreaker[[]byte](gobreaker.Settings{
		MaxRequests:  1, // while the breaker is half open: the probe
		Interval:     10 * time.Second,
		BucketPeriod: time.Second,
		Timeout:      jitter(c.Cooldown), // so that members don't probe at the same time
		ReadyToTrip: func(n gobreaker.Counts) bool {
			done := n.TotalSuccesses + n.TotalFailures
			return n.ConsecutiveFailures >= uint32(c.Failures) || done >= 20 && n.TotalFailures >= done/2
		},
		IsSuccessful: answered,
		// The store is not at fault if the caller's own time expired first. Peers can cause that:
		// they choose when a handshake begins, and when it is over. They must not be able to open
		// the breaker.
		IsExcluded: func(err error) bool { var gone *callerGone; return errors.As(err, &gone) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				caller.opens.Add(1)
			}
		},
	})
	return caller
}

// jitter returns a duration that differs from d by up to a fifth.
func jitter(d time.Duration) time.Duration {
	return d*4/5 + time.Duration(rand.Int64N(int64(d)*2/5+1))
}

// answered reports whether the store has answered: with a value, with none, or with an error reply.
func answered(err error) bool {
	var e redis.Error
	return err == nil || errors.As(err, &e)
}

// do runs f unless the breaker is open, until ctx is done or the timeout expires.
func (c *caller) do(ctx context.Context, f func(context.Context) ([]byte, error)) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case c.slots <- struct{}{}:
	default:
		return nil, errBusy
	}
	called := false
	b, err := c.breaker.Execute(func() ([]byte, error) {
		called = true
		b, err := within(ctx, c.timeout, f, func() { <-c.slots })
		if err != nil && over(ctx) {
			err = &callerGone{err}
		}
		return b, err
	})
	if !called {
		<-c.slots
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return b, err
}

// callerGone is the error of a call whose caller didn't wait as long as the store may take.
type callerGone struct{ error }

func (e *callerGone) Unwrap() error { return e.error }

// over reports whether ctx is done, or is about to be: a connection's own deadline may come just
// before ctx's.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < time.Millisecond
}

// within runs f in a goroutine of its own, and abandons it when the time is over, because it may be
// blocked in a call that no context interrupts. release is called when f has returned.
func within(ctx context.Context, timeout time.Duration, f func(context.Context) ([]byte, error), release func()) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer release()
		var r result
		r.b, r.err = guard(ctx, f)
		done <- r
	}()
	select {
	case r := <-done:
		var timeout net.Error
		if errors.As(r.err, &timeout) && timeout.Timeout() && !errors.Is(r.err, context.DeadlineExceeded) {
			r.err = fmt.Errorf("redisstore: %w: %w", context.DeadlineExceeded, r.err) // the connection's own deadline came first
		}
		return r.b, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("redisstore: %w", ctx.Err())
	}
}

// guard turns a panic of the client into an error. The client parses the store's replies; if it
// panicked in one of our goroutines, nothing could keep that from crashing the process.
func guard(ctx context.Context, f func(context.Context) ([]byte, error)) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("redisstore: the client panicked: %v", p)
		}
	}()
	return f(ctx)
}
