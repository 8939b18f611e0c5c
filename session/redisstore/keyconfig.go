package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/ossl-go/ossl/session"
)

// A KeysConfig configures how the ticket keys of a fleet are made and shared. All members must have
// the same values, except for Poll and Timeout. Zero values stand for the defaults; Secrets has no
// default.
type KeysConfig struct {
	// Secrets are shared by all members of the fleet. The first seals, all open.
	Secrets []session.Secret

	// Prefix begins all names in the store. The default is "ossl:".
	Prefix string

	// Period is how long a key seals before its successor does: 24 hours by default.
	Period time.Duration

	// Lifetime is how long tickets can be opened after they were made: seven days by default, the
	// longest that TLS 1.3 allows.
	Lifetime time.Duration

	// Lead is the time between the publication of a key and its first use: six times Poll by
	// default. It must be at least four times Poll, and at most half of Period.
	Lead time.Duration

	// Poll is the average time between two reads of the store, which vary by up to a fifth: 10
	// seconds by default.
	Poll time.Duration

	// Timeout bounds every call: 2 seconds by default. It must be at most Poll.
	Timeout time.Duration
}

func (c KeysConfig) resolve() (KeysConfig, error) {
	if len(c.Secrets) == 0 {
		return c, errSecrets
	}
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	for _, f := range []struct {
		name  string
		value *time.Duration
		zero  func() time.Duration
	}{
		{"Period", &c.Period, func() time.Duration { return 24 * time.Hour }},
		{"Lifetime", &c.Lifetime, func() time.Duration { return session.MaxTTL }},
		{"Poll", &c.Poll, func() time.Duration { return 10 * time.Second }},
		{"Lead", &c.Lead, func() time.Duration { return 6 * c.Poll }},
		{"Timeout", &c.Timeout, func() time.Duration { return min(2*time.Second, c.Poll) }},
	} {
		if *f.value < 0 || *f.value > 10*365*24*time.Hour {
			return c, fmt.Errorf("redisstore: KeysConfig.%s is out of range", f.name)
		}
		if *f.value == 0 {
			*f.value = f.zero()
		}
	}
	switch {
	case c.Lead < 4*c.Poll:
		return c, errors.New("redisstore: KeysConfig.Lead is less than four times Poll: members would read keys too late")
	case c.Period < 2*c.Lead:
		return c, errors.New("redisstore: KeysConfig.Period is less than twice Lead")
	case c.Timeout > c.Poll:
		return c, errors.New("redisstore: KeysConfig.Timeout is more than Poll")
	case c.Lifetime < time.Second:
		return c, errors.New("redisstore: KeysConfig.Lifetime is less than a second")
	case c.Period/c.Lifetime == 0 && c.Lifetime/c.Period > maxKeys/4:
		return c, fmt.Errorf("redisstore: KeysConfig: Period %v and Lifetime %v need too many keys", c.Period, c.Lifetime)
	}
	return c, nil
}
