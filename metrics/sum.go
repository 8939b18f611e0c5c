package metrics

import (
	"slices"

	"github.com/ossl-go/ossl"
)

// Sum returns the sum of a and b. It changes neither. Its lists have the order of a's lists, and
// elements that only b has come last.
func Sum(a, b ossl.Stats) ossl.Stats {
	return ossl.Stats{
		Handshakes:   sumOf(a.Handshakes, b.Handshakes, func(h *ossl.HandshakeStats) *uint64 { return &h.Count }),
		Failures:     sumOf(a.Failures, b.Failures, func(f *ossl.FailureStats) *uint64 { return &f.Count }),
		Durations:    sumOfDurations(a.Durations, b.Durations),
		Broken:       sumOf(a.Broken, b.Broken, func(f *ossl.FailureStats) *uint64 { return &f.Count }),
		OpenConns:    a.OpenConns + b.OpenConns,
		BytesRead:    a.BytesRead + b.BytesRead,
		BytesWritten: a.BytesWritten + b.BytesWritten,
		Records: ossl.RecordStats{
			Direct: a.Records.Direct + b.Records.Direct,
			Libssl: a.Records.Libssl + b.Records.Libssl,
			Kernel: a.Records.Kernel + b.Records.Kernel,
		},
		SessionCache: ossl.SessionCacheStats{
			Hits:      a.SessionCache.Hits + b.SessionCache.Hits,
			Misses:    a.SessionCache.Misses + b.SessionCache.Misses,
			Errors:    a.SessionCache.Errors + b.SessionCache.Errors,
			Puts:      a.SessionCache.Puts + b.SessionCache.Puts,
			PutErrors: a.SessionCache.PutErrors + b.SessionCache.PutErrors,
		},
		ChainCache: ossl.ChainCacheStats{
			Hits:   a.ChainCache.Hits + b.ChainCache.Hits,
			Misses: a.ChainCache.Misses + b.ChainCache.Misses,
		},
		Revocation: ossl.RevocationStats{
			Revoked:   a.Revocation.Revoked + b.Revocation.Revoked,
			HardFails: a.Revocation.HardFails + b.Revocation.HardFails,
			SoftFails: a.Revocation.SoftFails + b.Revocation.SoftFails,
		},
		CertificateCache:   sumOfCaches(a.CertificateCache, b.CertificateCache),
		ConfigurationCache: sumOfCaches(a.ConfigurationCache, b.ConfigurationCache),
	}
}

func sumOfCaches(a, b ossl.ConversionCacheStats) ossl.ConversionCacheStats {
	return ossl.ConversionCacheStats{Misses: a.Misses + b.Misses, Evictions: a.Evictions + b.Evictions}
}

// sumOf adds the counts of the elements of a and b that are equal otherwise.
func sumOf[T comparable](a, b []T, count func(*T) *uint64) []T {
	key := func(t T) T { *count(&t) = 0; return t }
	sum := slices.Clone(a)
	for _, t := range b {
		if i := slices.IndexFunc(sum, func(u T) bool { return key(u) == key(t) }); i >= 0 {
			*count(&sum[i]) += *count(&t)
		} else {
			sum = append(sum, t)
		}
	}
	return sum
}

// sumOfDurations adds histograms, whose bounds are the same in all Contexts.
func sumOfDurations(a, b []ossl.DurationStats) []ossl.DurationStats {
	sum := make([]ossl.DurationStats, 0, len(a)+len(b))
	for _, d := range slices.Concat(a, b) {
		i := slices.IndexFunc(sum, func(s ossl.DurationStats) bool { return s.Server == d.Server && s.Resumed == d.Resumed })
		if i < 0 {
			d.Buckets = slices.Clone(d.Buckets)
			sum = append(sum, d)
			continue
		}
		sum[i].Count += d.Count
		sum[i].Sum += d.Sum
		for j := range sum[i].Buckets {
			sum[i].Buckets[j].Count += d.Buckets[j].Count
		}
	}
	return sum
}
