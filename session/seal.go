package session

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Seal returns a Cache that keeps its sessions in inner, sealed by s. An attacker who can read or
// change the contents of inner learns how many sessions there are, their lengths and times, and can
// destroy them. The attacker can't read or make a session, put one in the place of another, make
// one last longer, or learn a session's ID: the IDs in inner are 32 bytes of HMAC-SHA256.
//
// If a session can't be opened, Get returns nil and an error that wraps [ErrSealed]. A session that
// has expired by this process's clock is a miss.
//
// While s has several secrets, each Get that misses, and each Put and Remove, calls inner once for
// each secret.
func Seal(inner Cache, s *Sealer) Cache { return &sealedCache{inner, s, time.Now} }

type sealedCache struct {
	inner  Cache
	sealer *Sealer
	now    func() time.Time
}

// Put seals under the first secret. It removes the sessions under the other secrets, since members
// that have these in another order would still find them.
func (c *sealedCache) Put(ctx context.Context, id, session []byte, expires time.Time) error {
	if len(id) == 0 {
		return ErrID
	}
	keys := *c.sealer.keys.Load()
	err := c.inner.Put(ctx, keys[0].hashID(id), c.sealer.seal(&keys[0], id, session, expires), expires)
	if rest := c.remove(ctx, keys[1:], id); err == nil {
		err = rest
	}
	return err
}

func (c *sealedCache) Get(ctx context.Context, id []byte, take bool) ([]byte, error) {
	if len(id) == 0 {
		return nil, ErrID
	}
	var failed error
	keys := *c.sealer.keys.Load()
	for i := range keys {
		sealed, err := c.inner.Get(ctx, keys[i].hashID(id), take)
		if err != nil {
			return nil, err // the store failed: the next call would fail too
		}
		if sealed == nil {
			continue
		}
		session, expires, err := c.sealer.Open(id, sealed)
		switch {
		case err != nil:
			failed = err
		case expires.After(c.now()):
			return session, nil
		}
	}
	return nil, failed
}

func (c *sealedCache) Remove(ctx context.Context, id []byte) error {
	if len(id) == 0 {
		return ErrID
	}
	return c.remove(ctx, *c.sealer.keys.Load(), id)
}

func (c *sealedCache) remove(ctx context.Context, keys []sealKey, id []byte) (err error) {
	for i := range keys {
		if e := c.inner.Remove(ctx, keys[i].hashID(id)); err == nil {
			err = e
		}
	}
	return err
}

// Format implements [fmt.Formatter]; no verb prints the contents, which include secrets.
func (c *sealedCache) Format(s fmt.State, verb rune) { io.WriteString(s, "sealed session cache") }
