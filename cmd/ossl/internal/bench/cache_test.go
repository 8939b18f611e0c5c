package bench_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
	"github.com/ossl-go/ossl/session"
)

// BenchmarkCache measures the cost of a session cache to a server if no session is resumed: full
// handshakes, with a session put into the cache for each, with tickets instead, and with neither.
// TLS 1.2 clients don't ask for tickets here; in TLS 1.3 a session's ID is sent as a ticket is, so a
// cache should be compared with tickets.
func BenchmarkCache(b *testing.B) {
	script := bench.HandshakeScript()
	for _, version := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
		for _, cert := range []bench.Cert{bench.P256, bench.RSA2048} {
			for _, sessions := range []string{"", "ticket", "id"} {
				if sessions == "ticket" && version == tls.VersionTLS12 {
					continue
				}
				pair := bench.Pair{Server: bench.OSSL, Client: bench.OSSL, Cert: cert, Version: version, Sessions: sessions}
				name := map[string]string{"": "none", "ticket": "tickets", "id": "cache"}[sessions]
				b.Run(fmt.Sprintf("cert=%s/version=%s/sessions=%s", cert, tls.VersionName(version)[len("TLS "):], name), row{
					pair:   pair,
					make:   func() (bench.Measure, error) { return bench.NewHandshake(pair) },
					script: &script,
				}.run)
			}
		}
	}
}

// BenchmarkCacheStore is the cache alone, full, used by all processors: finding a session, and
// putting another one in the place of the least recently used. bytes/entry is the full cache's
// allocated memory, by its own count; session's TestMemoryPerEntry measures the heap.
func BenchmarkCacheStore(b *testing.B) {
	const size = 180 // the approximate size of a session without a client's certificate
	ctx := context.Background()
	for _, n := range []int{10_000, 1_000_000} {
		cache := session.NewCache(n)
		id, value := make([]byte, 32), make([]byte, size)
		for i := range n {
			binary.BigEndian.PutUint64(id, uint64(i))
			if err := cache.Put(ctx, id, value, time.Now().Add(time.Hour)); err != nil {
				b.Fatal(err)
			}
		}
		stats := cache.Stats()
		each := func(op string, f func(id []byte)) {
			b.Run(fmt.Sprintf("entries=%d/op=%s", n, op), func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					id := make([]byte, 32)
					for pb.Next() {
						f(id)
					}
				})
				b.ReportMetric(float64(stats.Allocated)/float64(stats.Entries), "bytes/entry")
			})
		}
		each("get", func(id []byte) {
			binary.BigEndian.PutUint64(id, rand.Uint64N(uint64(n)))
			if _, err := cache.Get(ctx, id, false); err != nil {
				b.Error(err)
			}
		})
		each("put", func(id []byte) {
			binary.BigEndian.PutUint64(id, rand.Uint64())
			if err := cache.Put(ctx, id, value, time.Now().Add(time.Hour)); err != nil {
				b.Error(err)
			}
		})
	}
}
