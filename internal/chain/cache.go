package chain

import (
	"crypto/sha256"
	"crypto/x509"
	"slices"
	"sync"
	"time"
)

// A cache remembers verified chains, so that verifying a known peer again costs a hash instead of
// signatures.
//
// A hit is as good as a verification because x509.Certificate.Verify is a function of its inputs,
// and all of them are pinned:
//   - the bytes of every certificate that the peer sent, in order: their SHA-256 is in the key;
//   - the role and the name that the chain was verified for: both are in the key;
//   - key usages and every other option except the roots: they belong to the Verifier, which never
//     changes and alone has this cache;
//   - the roots: an entry is used only while the CertPool is unchanged. If any of its certificates
//     has a constraint (AddCertWithConstraint), whose answer may change, nothing is remembered;
//   - the time: an entry is used only while every certificate of every chain it holds is valid by
//     the configuration's clock, and for maxAge at most.
//
// If crypto/x509 asks the operating system (nil roots on Windows and macOS), maxAge bounds the time
// for which a change there goes unnoticed. Refusals are never remembered, nor are chains that were
// not verified (InsecureSkipVerify, RequireAnyClientCert). Every caller gets slices of its own.
type cache struct {
	mu      sync.Mutex
	max     int
	clock   func() time.Time // the machine's, not the configuration's
	servers trustedPool
	clients trustedPool
	entries map[cacheKey]*cacheEntry // guarded by mu
}

// A trustedPool is a CertPool that chains are verified against; nil means the system's.
type trustedPool struct {
	pool *x509.CertPool
	last *trust // guarded by the cache's mu; the pool's trust at the last look
}

// A cacheKey identifies the bytes that were verified and the peer.
type cacheKey struct {
	sum [sha256.Size]byte // of the packed chain
	peer
}

type cacheEntry struct {
	certs  []*x509.Certificate   // parsed from the peer's bytes; shared, never changed
	chains [][]*x509.Certificate // as Verify returned them
	trust  *trust                // the roots that verified it

	// These have no monotonic reading, since certificates are valid by the wall clock. Package time
	// compares two times by their monotonic readings if both have one, but the monotonic clock
	// stops while the machine sleeps and ignores changes of the wall clock.
	from, until time.Time

	verified time.Time // by the configuration's clock
	made     time.Time // by the machine's
}

// holds reports whether the entry can replace a verification. now is the time by the
// configuration's clock, clock by the machine's.
func (e *cacheEntry) holds(now, clock time.Time) bool {
	if wall := now.Round(0); wall.Before(e.from) || wall.After(e.until) {
		return false
	}
	return max(age(now, e.verified), age(clock, e.made)) <= maxAge
}

// age returns the time since made by the wall clock or by the monotonic clock, whichever is longer.
func age(now, made time.Time) time.Duration {
	return max(now.Sub(made), now.Round(0).Sub(made.Round(0)))
}

const maxAge = 10 * time.Minute

// maxSize is the size of the largest chain, in bytes as sent, that is remembered. Three certificates
// with ML-DSA-87 have 23 KB.
const maxSize = 32 << 10

// newCache returns a cache of at most size entries, or nil for size 0: a nil cache never hits.
// Servers' chains are verified against rootCAs, clients' chains against clientCAs.
func newCache(size int, rootCAs, clientCAs *x509.CertPool) *cache {
	if size == 0 {
		return nil
	}
	return &cache{
		max:     size,
		clock:   time.Now,
		servers: trustedPool{pool: rootCAs},
		clients: trustedPool{pool: clientCAs},
		entries: make(map[cacheKey]*cacheEntry),
	}
}

// get returns the certificates and chains remembered for key, if they hold at the time now.
// Otherwise before is the trust before the verification, to be passed to put.
func (c *cache) get(key cacheKey, now time.Time) (certs []*x509.Certificate, chains [][]*x509.Certificate, before *trust) {
	e, before := c.entry(key, now)
	if e == nil {
		return nil, nil, before
	}
	return slices.Clone(e.certs), cloneChains(e.chains), nil
}

func cloneChains(chains [][]*x509.Certificate) [][]*x509.Certificate {
	clone := make([][]*x509.Certificate, len(chains))
	for i, chain := range chains {
		clone[i] = slices.Clone(chain)
	}
	return clone
}

func (c *cache) entry(key cacheKey, now time.Time) (*cacheEntry, *trust) {
	if c == nil {
		return nil, nil
	}
	clock := c.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	trusted := c.trusted(key.peer, clock)
	e := c.entries[key]
	if e == nil {
		return nil, trusted
	}
	if e.trust != trusted || !e.holds(now, clock) {
		delete(c.entries, key)
		return nil, trusted
	}
	return e, trusted
}

// trusted returns the trust that the chains of a peer are verified against. clock is the time by
// the machine's clock. mu is locked.
func (c *cache) trusted(p peer, clock time.Time) *trust {
	pool := &c.clients
	if p.server {
		pool = &c.servers
	}
	if pool.pool == nil {
		return trustInSystem(clock)
	}
	pool.last = trustIn(pool.pool, pool.last)
	return pool.last
}

// put remembers the chains that Verify found at the time now, at least one. before is the trust
// that get returned.
func (c *cache) put(key cacheKey, certs []*x509.Certificate, chains [][]*x509.Certificate, now time.Time, before *trust) {
	size := 0
	for _, cert := range certs {
		size += len(cert.Raw)
	}
	if c == nil || len(chains) == 0 || size > maxSize || before == nil || before.asks {
		return
	}
	e := &cacheEntry{certs: slices.Clone(certs), chains: cloneChains(chains), trust: before, verified: now, made: c.clock()}
	// The entry can't be used before the time of its verification: Config.Time may go backwards,
	// and Verify has not checked an earlier time.
	e.from = now.Round(0)
	e.until = e.from.Add(maxAge)
	for _, chain := range chains {
		for _, cert := range chain {
			if cert.NotAfter.Before(e.until) {
				e.until = cert.NotAfter
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trusted(key.peer, e.made) != before { // the chain may have been verified against either
		return
	}
	for old, dead := range c.entries { // at each put, look at one entry at random
		if !dead.holds(now, e.made) {
			delete(c.entries, old)
		}
		break
	}
	for old := range c.entries { // in random order, which no peer can predict
		if len(c.entries) < c.max {
			break
		}
		delete(c.entries, old)
	}
	c.entries[key] = e
}
