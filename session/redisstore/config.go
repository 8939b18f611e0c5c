package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/ossl-go/ossl/session"
)

// A Config says how a [Store] uses what it stands on. Zero values stand for the defaults; Secrets has none.
type Config struct {
	// Secrets are shared by all members of the fleet. The first seals, all open; [session.Sealer.Set] says how to change them.
	Secrets []session.Secret

	// Prefix begins all names in the store. The default is "ossl:".
	Prefix string

	// Timeout bounds every call. The default is 50 ms: what a lookup may cost a handshake at worst.
	Timeout time.Duration

	// Failures is how many calls in a row must fail for the breaker to open: 5 by default. It also opens when half of 20 or more
	// calls in about 10 seconds fail. Failures are timeouts and broken connections; a store that answers, be it with an error, is
	// alive.
	Failures int

	// Cooldown is for how long an open breaker lets no call through, before one may probe: 1 s by default.
	Cooldown time.Duration

	// Concurrency bounds the calls under way: 128 by default. More are refused at once. A call that has timed out still counts until
	// the client lets go of it.
	Concurrency int

	// Queue is the number of sessions that may wait to be written: 1024 by default. Those who put them never wait; what comes when
	// the queue is full, or holds 4096 bytes for each of its places, is dropped.
	Queue int
}

// Limits of what Config may ask for; beyond them it is a mistake in units, most likely.
const (
	maxTimeout     = 10 * time.Second
	maxConcurrency = 1 << 16
	maxQueue       = 1 << 20
)

var errSecrets = errors.New("redisstore: Secrets is empty: nothing leaves the process unsealed")

// resolve fills in defaults and refuses what makes no sense.
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
