//go:build cgo || ossl_nocgo

package resumption

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

const (
	// maxBytesPerSession is the maximum of memory for a session in a cache, as session.NewCache
	// promises.
	maxBytesPerSession = session.BytesPerEntry
	// C's heap may grow by some bytes for each handshake, since its pools continue to fill up for
	// some time. A session that libssl kept would take 1,000 bytes.
	maxCBytes = 500
	cSlack    = 64 << 10
)

// switchedCache passes on to a cache that can be changed, and counts the sessions that are put
// there.
type switchedCache struct {
	session.Cache
	copies     int // of each session under random IDs, instead of more handshakes, which take time
	put, bytes atomic.Int64
}

func (c *switchedCache) Put(ctx context.Context, id, der []byte, expires time.Time) error {
	c.put.Add(1)
	c.bytes.Add(int64(len(der)))
	for range c.copies {
		other := make([]byte, len(id))
		rand.Read(other)
		if err := c.Cache.Put(ctx, other, der, expires); err != nil {
			return err
		}
	}
	return c.Cache.Put(ctx, id, der, expires)
}

// TestBytesPerSession fills a cache for 10,000 sessions and counts the bytes that they have added
// to Go's heap and, if it can be read, to C's. Handshakes make every fortieth session; its bytes
// are put under other IDs for the rest.
func TestBytesPerSession(t *testing.T) {
	if testing.Short() {
		t.Skip("long: only without -short")
	}
	const entries, copies, warmUp = 10_000, 39, 200
	for _, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048} {
		for _, version := range tlstest.Versions {
			t.Run(fmt.Sprintf("%s/%s", tlstest.VersionName(version), kind), func(t *testing.T) {
				sc := tlstest.ServerConfig(tlstest.Only(version), tlstest.Certificates(tlstest.ServerCert(kind)))
				sc.SessionTicketsDisabled = true
				cache := &switchedCache{Cache: session.NewCache(100)}
				cc := tlstest.ClientConfig(tlstest.Only(version))
				client, server := ossltest.Client(t, cc), ossltest.Server(t, sc, ossl.WithSessionCache(cache))
				for range warmUp { // fills pools, and makes all objects that are made once
					tlstest.Visit(t, client, server)
				}
				if n := cache.put.Load(); n < warmUp {
					t.Fatalf("%d sessions of %d handshakes were put into the cache", n, warmUp)
				}
				heapAlloc() // and frees the unused ones
				goBefore, cBefore := heapAlloc(), libssl.HeapInUse()
				// In one part: of several each is full at its share, and random IDs don't fill them
				// evenly.
				full, err := session.NewMemory(session.MemoryConfig{Entries: entries, Shards: 1})
				if err != nil {
					t.Fatal(err)
				}
				cache.Cache, cache.copies = full, copies
				cache.put.Store(0)
				cache.bytes.Store(0)
				for range entries / (copies + 1) {
					tlstest.Visit(t, client, server)
				}
				goAfter, cAfter := heapAlloc(), libssl.HeapInUse()
				stats := full.Stats()
				runtime.KeepAlive(cache)
				if stats.Entries != entries {
					t.Fatalf("the cache has %d entries", stats.Entries)
				}
				perEntry := float64(int64(goAfter)-int64(goBefore)) / float64(stats.Entries)
				inC, n := int64(cAfter)-int64(cBefore), cache.put.Load()
				der := float64(cache.bytes.Load()) / float64(n)
				t.Logf("a session has %.1f bytes as DER and takes %.1f in the cache; C's heap grew by %d in %d handshakes", der, perEntry,
					inC, n)
				if perEntry > maxBytesPerSession {
					t.Errorf("a session takes %.1f bytes, more than %d", perEntry, maxBytesPerSession)
				}
				if inC > maxCBytes*n+cSlack {
					t.Errorf("C's heap grew by %d bytes in %d handshakes: libssl keeps sessions", inC, n)
				}
			})
		}
	}
}

func heapAlloc() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
