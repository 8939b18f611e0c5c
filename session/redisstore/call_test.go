package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl/session"
)

func testCaller(t *testing.T, c Config) *caller {
	t.Helper()
	c.Secrets = []session.Secret{{1}}
	c, err := c.resolve()
	if err != nil {
		t.Fatal(err)
	}
	return newCaller(c)
}

// hang is a call that returns when its context is done.
func hang(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestCallerBreaker follows the breaker through all its states on a clock of its own.
func TestCallerBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testCaller(t, Config{Failures: 3, Timeout: 50 * time.Millisecond, Cooldown: time.Second})
		var calls atomic.Int32 // counted in goroutines that may have been given up
		do := func(f func(context.Context) ([]byte, error)) error {
			t.Helper()
			start := time.Now()
			_, err := c.do(t.Context(), func(ctx context.Context) ([]byte, error) { calls.Add(1); return f(ctx) })
			if d := time.Since(start); d > 50*time.Millisecond {
				t.Errorf("a call took %v", d)
			}
			return err
		}
		fine := func(context.Context) ([]byte, error) { return []byte("x"), nil }
		for i := range 3 {
			if err := do(hang); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnavailable) {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		start := time.Now()
		for range 1000 {
			if err := do(fine); !errors.Is(err, ErrUnavailable) {
				t.Fatalf("with the breaker open: %v", err)
			}
		}
		if calls.Load() != 3 || time.Since(start) != 0 {
			t.Fatalf("%d calls were made, %v waited", calls.Load(), time.Since(start))
		}

		// One call probes. The breaker refuses all other calls until the probe has failed.
		time.Sleep(1300 * time.Millisecond)
		probe := make(chan error)
		go func() { probe <- do(hang) }()
		synctest.Wait()
		for range 1000 {
			if err := do(fine); !errors.Is(err, ErrUnavailable) {
				t.Fatalf("during a probe: %v", err)
			}
		}
		if err := <-probe; !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err := do(fine); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("after a probe that failed: %v", err)
		}
		if calls.Load() != 4 {
			t.Fatalf("%d calls were made", calls.Load())
		}

		// A probe whose caller goes away proves nothing, so the next call probes. One that succeeds
		// closes the breaker.
		time.Sleep(1300 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, err := c.do(ctx, hang); probe <- err }()
		synctest.Wait()
		cancel()
		if err := <-probe; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for range 100 {
			if err := do(fine); err != nil {
				t.Fatal(err)
			}
		}
		if opens := c.opens.Load(); opens != 2 {
			t.Errorf("opened %d times", opens)
		}
	})
}

// TestCallerWhatFails: error replies, and callers that go away, leave the breaker closed. It opens
// if half of the calls fail, even if no three in a row do.
func TestCallerWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testCaller(t, Config{Failures: 3})
		for range 100 {
			c.do(t.Context(), func(context.Context) ([]byte, error) { return nil, fmt.Errorf("wrapped: %w", redis.Nil) })
			ctx, cancel := context.WithCancel(t.Context())
			_, err := c.do(ctx, func(ctx context.Context) ([]byte, error) { cancel(); return hang(ctx) })
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if _, err := c.do(ctx, hang); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond) // a peer that let the handshake's time run out
			if _, err := c.do(ctx, hang); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
		if c.open() {
			t.Fatal("open, though nothing has failed")
		}
		time.Sleep(11 * time.Second) // successes are forgotten
		broken := errors.New("broken pipe")
		made := 0
		for i := range 1000 {
			c.do(t.Context(), func(context.Context) ([]byte, error) {
				made++
				if i%2 == 0 {
					return nil, broken
				}
				return nil, nil
			})
		}
		if !c.open() || made != 21 {
			t.Fatalf("half of %d calls have failed; open: %v", made, c.open())
		}
	})
}

// TestCallerStuck checks that calls that no context interrupts hold their slots. Other calls fail
// at once, and succeed when the stuck calls have returned.
func TestCallerStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testCaller(t, Config{Failures: 100, Concurrency: 4})
		release := make(chan struct{})
		for range 4 {
			_, err := c.do(t.Context(), func(context.Context) ([]byte, error) { <-release; return nil, nil })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		start := time.Now()
		for range 100 {
			if _, err := c.do(t.Context(), hang); !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
		}
		if time.Since(start) != 0 {
			t.Error("the refused waited")
		}
		close(release)
		synctest.Wait()
		if _, err := c.do(t.Context(), func(context.Context) ([]byte, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCallerPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testCaller(t, Config{})
		_, err := c.do(t.Context(), func(context.Context) ([]byte, error) { panic("in the client") })
		if err == nil || answered(err) {
			t.Fatal(err)
		}
		synctest.Wait() // the slot is given back after the answer
		if len(c.slots) != 0 {
			t.Error("a slot is lost")
		}
	})
}

func TestConfig(t *testing.T) {
	secrets := []session.Secret{{1}}
	for name, c := range map[string]Config{
		"no secret":            {},
		"no timeout":           {Secrets: secrets, Timeout: -1},
		"a minute":             {Secrets: secrets, Timeout: time.Minute},
		"negative failures":    {Secrets: secrets, Failures: -1},
		"negative cooldown":    {Secrets: secrets, Cooldown: -1},
		"negative concurrency": {Secrets: secrets, Concurrency: -1},
		"negative queue":       {Secrets: secrets, Queue: -1},
		"a zero secret":        {Secrets: []session.Secret{{}}},
		"the same secret":      {Secrets: []session.Secret{{1}, {1}}},
	} {
		if s, err := New(nil, c); err == nil || s != nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, c := range map[string]KeysConfig{
		"no secret":         {},
		"a zero secret":     {Secrets: []session.Secret{{}}},
		"a short lead":      {Secrets: secrets, Lead: 10 * time.Second},
		"a short period":    {Secrets: secrets, Period: time.Minute},
		"a long timeout":    {Secrets: secrets, Timeout: time.Minute},
		"a short lifetime":  {Secrets: secrets, Lifetime: time.Millisecond},
		"far too many keys": {Secrets: secrets, Period: 10 * time.Minute},
		"negative":          {Secrets: secrets, Period: -1},
	} {
		if k, err := NewKeys(nil, c); err == nil || k != nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if k, err := NewKeys(nil, KeysConfig{Secrets: secrets}); err != nil || k.config.Lead != time.Minute {
		t.Error(err)
	}
}
