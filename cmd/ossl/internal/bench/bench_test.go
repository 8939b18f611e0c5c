package bench_test

import (
	"crypto/tls"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
)

func TestMain(m *testing.M) {
	bench.ServeIdle()
	// A configuration line for benchstat: the libssl that was measured.
	if info, err := ossl.Library(); err == nil {
		fmt.Printf("libssl: %s\n", info.Version)
	}
	os.Exit(m.Run())
}

// splitTime bounds the time for measuring the client's and the server's processor time in a row.
const splitTime = 100 * time.Millisecond

// A row is one benchmark: a function that makes its Measure, and the script for the same in
// lockstep, if there is one.
type row struct {
	pair   bench.Pair
	make   func() (bench.Measure, error)
	script *bench.Script
	bytes  int64
}

func (r row) run(b *testing.B) {
	if r.pair != bench.Plain {
		if _, err := r.pair.Open(); bench.GroupRefused(err) {
			b.Skip(err) // this libssl can't run the row
		}
	}
	baseline, _ := r.crossings(b, func(bench.Measure) {})
	crossings, ops := r.crossings(b, func(m bench.Measure) {
		b.ReportAllocs()
		b.SetBytes(r.bytes)
		ready := 0
		for b.Loop() {
			if ready == 0 {
				b.StopTimer()
				var err error
				if ready, err = m.Prepare(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			ready--
			if err := m.Do(); err != nil {
				b.Fatal(err)
			}
		}
	})
	if r.pair.Uses(bench.OSSL) {
		b.ReportMetric(float64(crossings-baseline)/float64(ops), "crossings/op")
	}
	if r.script != nil {
		cpu, err := bench.SplitCPU(r.pair, *r.script, b.N, splitTime)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(cpu.Client), "client-ns/op")
		b.ReportMetric(float64(cpu.Server), "server-ns/op")
	}
}

// crossings returns the number of crossings of a Measure, from its making to its closing with f
// between them, and the number of operations. Connections add theirs when they close.
func (r row) crossings(b *testing.B, f func(bench.Measure)) (crossings uint64, ops int) {
	before := bench.Crossings()
	m, err := r.make()
	if err != nil {
		b.Fatal(err)
	}
	f(m)
	if ops, err = m.Close(); err != nil {
		b.Fatal(err)
	}
	return bench.Crossings() - before, ops
}

// BenchmarkHandshake is a full handshake on connected sockets. The crossings are counted over the
// whole lives of both connections.
func BenchmarkHandshake(b *testing.B) {
	script := bench.HandshakeScript()
	for _, kex := range []tls.CurveID{tls.X25519, tls.X25519MLKEM768} {
		for _, cert := range bench.Certs {
			for _, mutual := range []bool{false, true} {
				for _, pair := range bench.Pairings {
					pair.Cert, pair.Mutual, pair.Kex = cert, mutual, kex
					run := func(cache string) {
						pair.NoChainCache = cache == "off"
						b.Run(handshakeName(pair, cache), row{
							pair:   pair,
							make:   func() (bench.Measure, error) { return bench.NewHandshake(pair) },
							script: &script,
						}.run)
					}
					run("off")
					if pair.Client == bench.OSSL {
						run("hit")
					}
				}
			}
		}
	}
}

func handshakeName(p bench.Pair, cache string) string {
	return fmt.Sprintf("server=%s/client=%s/cert=%s/mutual=%v/kex=%s/chaincache=%s", p.Server, p.Client, p.Cert, p.Mutual, p.Kex,
		cache)
}

// dataPairs are the pairs whose data rates are compared: plain TCP, and all pairings with each
// record path.
func dataPairs() []bench.Pair {
	pairs := []bench.Pair{bench.Plain}
	for _, pair := range bench.Pairings {
		pair.Cert = bench.P256
		pairs = append(pairs, pair.RecordPaths()...)
	}
	return pairs
}

// secured returns script, or nil for plain TCP, which without a network has no processor time to
// measure.
func secured(pair bench.Pair, script bench.Script) *bench.Script {
	if pair == bench.Plain {
		return nil
	}
	return &script
}

// BenchmarkLatency is a round trip of five bytes each way.
func BenchmarkLatency(b *testing.B) {
	for _, pair := range dataPairs() {
		b.Run(fmt.Sprintf("server=%s/client=%s%s", pair.Server, pair.Client, pair.RecordKey()), row{
			pair:   pair,
			make:   func() (bench.Measure, error) { return bench.NewLatency(pair) },
			script: secured(pair, bench.LatencyScript()),
		}.run)
	}
}

// BenchmarkConnections is a whole connection: dial, handshake, one round trip, close on both sides.
// ossl's clients have their default cache of verified chains.
func BenchmarkConnections(b *testing.B) {
	for _, cert := range bench.Certs {
		for _, pair := range bench.Pairings {
			pair.Cert = cert
			b.Run(fmt.Sprintf("server=%s/client=%s/cert=%s", pair.Server, pair.Client, cert), row{
				pair: pair,
				make: func() (bench.Measure, error) { return bench.NewConnections(pair) },
			}.run)
		}
	}
}

// BenchmarkResumption is BenchmarkConnections with connections that resume the previous one's
// session, by ticket or, if the server is ossl's, by the ID of a session in its cache. full is the
// same without resumption.
func BenchmarkResumption(b *testing.B) {
	script := bench.ConnectionScript()
	for _, version := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
		for _, cert := range []bench.Cert{bench.P256, bench.RSA2048} {
			for _, resume := range []string{"", "ticket", "id"} {
				for _, pair := range bench.Pairings {
					if resume == "id" && (pair.Server == bench.Std || version == tls.VersionTLS12 && pair.Client == bench.Std) {
						continue // crypto/tls has no such cache, and its clients resume TLS 1.2 by ticket only
					}
					pair.Cert, pair.Resume, pair.Version = cert, resume, version
					b.Run(resumptionName(pair), row{
						pair:   pair,
						make:   func() (bench.Measure, error) { return bench.NewConnections(pair) },
						script: &script,
					}.run)
				}
			}
		}
	}
}

func resumptionName(p bench.Pair) string {
	version := map[uint16]string{tls.VersionTLS12: "1.2", tls.VersionTLS13: "1.3"}[p.Version]
	resume := map[string]string{"": "full", "ticket": "ticket", "id": "id"}[p.Resume]
	return fmt.Sprintf("server=%s/client=%s/cert=%s/version=%s/resume=%s", p.Server, p.Client, p.Cert, version, resume)
}

// BenchmarkBulk is a stream in one direction, in writes of one size.
func BenchmarkBulk(b *testing.B) {
	for _, dir := range []bench.Dir{bench.Up, bench.Down} {
		for _, write := range []struct {
			name string
			size int
		}{{"1KB", 1 << 10}, {"16KB", 16 << 10}, {"1MB", 1 << 20}} {
			for _, pair := range dataPairs() {
				name := fmt.Sprintf("server=%s/client=%s/dir=%s/write=%s%s", pair.Server, pair.Client, dir, write.name,
					pair.RecordKey())
				b.Run(name, row{
					pair:   pair,
					make:   func() (bench.Measure, error) { return bench.NewBulk(pair, dir, write.size) },
					script: secured(pair, bench.BulkScript(dir, write.size)),
					bytes:  int64(write.size),
				}.run)
			}
		}
	}
}

// BenchmarkIdleMemory is the memory of a server's idle connection; the time is for making 10,000 of
// them.
func BenchmarkIdleMemory(b *testing.B) {
	std := bench.Pair{Server: bench.Std, Client: bench.Std}
	ossl := bench.Pair{Server: bench.OSSL, Client: bench.Std}
	for _, pair := range append(std.RecordPaths(), ossl.RecordPaths()...) {
		b.Run(fmt.Sprintf("impl=%s%s", pair.Server, pair.RecordKey()), func(b *testing.B) {
			var m bench.Memory
			for b.Loop() {
				var err error
				if m, err = bench.IdleMemory(pair.Server, pair.Records, bench.IdleConnections); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(m.GoHeap, "go-B/conn")
			b.ReportMetric(m.GoStack, "stack-B/conn")
			b.ReportMetric(m.C, "c-B/conn")
			b.ReportMetric(m.RSS, "rss-B/conn")
		})
	}
}
