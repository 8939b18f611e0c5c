package session

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Seal returns a Cache that keeps its sessions in inner, sealed by s. Whoever can read or change what inner holds learns how many
// sessions there are, their lengths and times, and can destroy them; he can't read or make one, put one in the place of another,
// make one last longer, or name one to a server: inner's IDs are 32 bytes of HMAC-SHA256.
//
// What doesn't open is a miss with an error that wraps [ErrSealed]; what has expired by this process's clock is a miss.
//
// While s has several secrets, each Get that misses, and each Put and Remove, takes a call of inner for each.
func Seal(inner Cache, s *Sealer) Cache { return &sealedCache{inner, s, time.Now} }

type sealedCache struct {
	inner  Cache
	sealer *Sealer
	now    func() time.Time
}

// Put seals under the first secret. What is there under others would be found by members that have them in another order.
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
			return nil, err // of the store: the next call would fare no better
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

// Format implements [fmt.Formatter]: no verb prints what is inside, among which are secrets.
func (c *sealedCache) Format(s fmt.State, verb rune) { io.WriteString(s, "sealed session cache") }
