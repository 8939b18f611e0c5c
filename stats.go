package ossl

import (
	"cmp"
	"crypto/tls"
	"slices"
	"time"
)

// Stats are counts of connections. All except OpenConns only grow.
type Stats struct {
	Handshakes []HandshakeStats // handshakes that succeeded, by their parameters
	Failures   []FailureStats   // handshakes that failed, by their reasons
	Durations  []DurationStats  // of the handshakes that succeeded
	Broken     []FailureStats   // connections that an error broke after the handshake, counted when they are closed

	OpenConns uint64 // connections whose handshake has succeeded, and on which Close was not called

	// The bytes of application data. At most 64 KB of each open connection and direction are not
	// counted yet.
	BytesRead, BytesWritten uint64

	Records      RecordStats
	SessionCache SessionCacheStats
	ChainCache   ChainCacheStats
	Revocation   RevocationStats

	// The caches of [WithCertificateCache] and [WithConfigurationCache]; for the process, those of the
	// drop-in functions too.
	CertificateCache, ConfigurationCache ConversionCacheStats
}

// HandshakeStats count the handshakes that succeeded with certain parameters.
type HandshakeStats struct {
	Server      bool // this side is the server
	Version     uint16
	CipherSuite uint16
	CurveID     tls.CurveID // 0 if there was no key exchange
	Resumption  Resumption
	HelloRetry  bool // the server has asked for another ClientHello: RFC 8446, section 4.1.4

	Count uint64
}

// FailureStats count the connections that failed for a certain reason.
type FailureStats struct {
	Server  bool // this side is the server
	Failure Failure

	Count uint64
}

// DurationStats are a histogram of the durations of handshakes. The time of a server begins with
// the client's first bytes. A callback's time is part of it.
type DurationStats struct {
	Server  bool // this side is the server
	Resumed bool

	Count   uint64
	Sum     time.Duration
	Buckets []DurationBucket // by their bounds
}

// A DurationBucket counts the handshakes that took at most a certain time.
type DurationBucket struct {
	AtMost time.Duration
	Count  uint64 // includes all smaller buckets
}

// RecordStats count the connections by the code that seals and opens their records; see
// [RecordPath] and [WithKernelTLS]. A TLS 1.3 client with a ClientSessionCache may be counted only
// when it has read its first ticket or data.
type RecordStats struct {
	Direct uint64 // ossl, with libcrypto: RecordsDirect
	Libssl uint64 // libssl
	Kernel uint64 // among Direct, those whose sent records the kernel seals
}

// SessionCacheStats count the calls of a [session.Cache].
type SessionCacheStats struct {
	Hits, Misses, Errors uint64 // of Get
	Puts, PutErrors      uint64
}

// ChainCacheStats count the verifications of peers' chains. See [WithVerifiedChainCache].
type ChainCacheStats struct {
	Hits, Misses uint64
}

// RevocationStats count the verifications of peers by the lists of [WithCRLs] that found fault. They
// include those of sessions that a peer offered, and that were then not resumed.
type RevocationStats struct {
	Revoked   uint64 // refused, since a certificate was revoked
	HardFails uint64 // refused, since there was no list in force: [WithCRLHardFail]
	SoftFails uint64 // accepted, although there was no list in force: [WithCRLSoftFail]
}

// ConversionCacheStats count for a cache of certificates or configurations in OpenSSL's form.
type ConversionCacheStats struct {
	Misses    uint64 // conversions
	Evictions uint64 // of entries for which there was no room
}

// Stats returns the counts of the Context's connections. They include connections for which
// GetConfigForClient has chosen another configuration. [Dial], [Client] and the other functions
// that also exist in crypto/tls make Contexts of their own, whose counts only [ProcessStats] has.
func (c *Context) Stats() Stats { return c.observer.counters.snapshot() }

// ProcessStats returns the counts of all connections of the process. Those whose configuration was
// refused, and which therefore have no Context, are among them.
func ProcessStats() Stats { return processCounters().snapshot() }

// durationBounds are the bounds of the buckets of DurationStats. Handshakes on one host take half a
// millisecond, those over the world some hundred.
var durationBounds = [...]time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// snapshot returns the counts, in an order that doesn't change.
func (c *counters) snapshot() Stats {
	c.mu.Lock()
	s := Stats{
		Handshakes: make([]HandshakeStats, 0, len(c.handshakes)),
		Failures:   failureStats(c.failures),
		Broken:     failureStats(c.broken),
		Records:    c.records,
		ChainCache: ChainCacheStats{c.chains.Hits.Load(), c.chains.Misses.Load()},
		Revocation: RevocationStats{c.revocation.revoked.Load(), c.revocation.hardFails.Load(), c.revocation.softFails.Load()},

		CertificateCache:   c.certificates.stats(),
		ConfigurationCache: c.configurations.stats(),
	}
	for h, n := range c.handshakes {
		h.Count = n
		s.Handshakes = append(s.Handshakes, h)
	}
	for key, h := range c.durations {
		s.Durations = append(s.Durations, h.stats(key))
	}
	s.SessionCache, s.OpenConns = c.sessions, c.opened-c.closed.Load()
	c.mu.Unlock()

	s.BytesRead, s.BytesWritten = c.read.Load(), c.written.Load()
	slices.SortFunc(s.Handshakes, func(a, b HandshakeStats) int {
		return cmp.Or(compareBools(a.Server, b.Server), cmp.Compare(a.Version, b.Version), cmp.Compare(a.CipherSuite, b.CipherSuite),
			cmp.Compare(a.CurveID, b.CurveID), cmp.Compare(a.Resumption, b.Resumption), compareBools(a.HelloRetry, b.HelloRetry))
	})
	slices.SortFunc(s.Durations, func(a, b DurationStats) int {
		return cmp.Or(compareBools(a.Server, b.Server), compareBools(a.Resumed, b.Resumed))
	})
	return s
}

func failureStats(counts map[FailureStats]uint64) []FailureStats {
	stats := make([]FailureStats, 0, len(counts))
	for f, n := range counts {
		f.Count = n
		stats = append(stats, f)
	}
	slices.SortFunc(stats, func(a, b FailureStats) int {
		return cmp.Or(compareBools(a.Server, b.Server), cmp.Compare(a.Failure.Class, b.Failure.Class),
			cmp.Compare(a.Failure.Alert, b.Failure.Alert))
	})
	return stats
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
