package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/ossl-go/ossl/session"
)

// A Config configures a [Store]. Zero values stand for the defaults; Secrets has no default.
type Config struct {
	// Secrets are shared by all members of the fleet. The first seals, all open; see
	// [session.Sealer.Set] for how to change them.
	Secrets []session.Secret

	// Prefix begins all names in the store. The default is "ossl:".
	Prefix string

	// Timeout bounds every call. The default is 50 ms; this is the most that a lookup adds to a
	// handshake.
	Timeout time.Duration

	// Failures is the number of consecutive failed calls that opens the breaker: 5 by default. The
	// breaker also opens when half of 20 or more calls in about 10 seconds fail. Failures are
	// timeouts and broken connections; an error reply is not a failure, since it shows that the
	// store is alive.
	Failures int

	// Cooldown is the time for which an open breaker lets no call through, before one may probe: 1
	// s by default.
	Cooldown time.Duration

	// Concurrency bounds the calls under way: 128 by default. Calls above it fail at once. A call
	// that has timed out still counts until the client gives it up.
	Concurrency int

	// Queue is the number of sessions that may wait to be written: 1024 by default. Put never
	// waits: it drops a session if the queue is full, or holds 4096 bytes for each of its places.
	Queue int
}

// Limits of Config's values. A larger value is most likely a mistake in units.
const (
	maxTimeout     = 10 * time.Second
	maxConcurrency = 1 << 16
	maxQueue       = 1 << 20
)

var errSecrets = errors.New("redisstore: Secrets is empty: sessions and keys are stored only sealed")

// resolve returns c with defaults filled in, or an error if a value is invalid.
func (c Config) resolve() (Config, error) {
	if len(c.Secrets) == 0 {
		return c, errSecrets
	}
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if c.Timeout == 0 {
		c.Timeout = 50 * time.Millisecond
	}
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.Cooldown == 0 {
		c.Cooldown = time.Second
	}
	if c.Concurrency == 0 {
		c.Concurrency = 128
	}
	if c.Queue == 0 {
		c.Queue = 1024
	}
	for _, f := range []struct {
		name  string
		value int64
		max   int64
	}{
		{"Timeout", int64(c.Timeout), int64(maxTimeout)},
		{"Failures", int64(c.Failures), 1 << 20},
		{"Cooldown", int64(c.Cooldown), int64(time.Hour)},
		{"Concurrency", int64(c.Concurrency), maxConcurrency},
		{"Queue", int64(c.Queue), maxQueue},
	} {
		if f.value < 0 || f.value > f.max {
			return c, fmt.Errorf("redisstore: Config.%s is out of range", f.name)
		}
	}
	return c, nil
}

const defaultPrefix = "ossl:"
