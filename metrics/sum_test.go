package metrics_test

import (
	"crypto/tls"
	"reflect"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
)

// stats returns statistics in which every number is a multiple of n.
func stats(n uint64) ossl.Stats {
	return ossl.Stats{
		Handshakes: []ossl.HandshakeStats{
			{Server: true, Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256, CurveID: tls.X25519, Count: n},
		},
		Failures: []ossl.FailureStats{
			{Server: true, Failure: ossl.Failure{Class: ossl.FailureRefused, Alert: 70}, Count: 2 * n},
		},
		Durations: []ossl.DurationStats{
			{Server: true, Count: n, Sum: time.Duration(n) * time.Second, Buckets: []ossl.DurationBucket{
				{AtMost: time.Second, Count: n}, {AtMost: time.Minute, Count: n},
			}},
		},
		Broken:       []ossl.FailureStats{{Server: true, Failure: ossl.Failure{Class: ossl.FailureTruncated}, Count: 3 * n}},
		OpenConns:    4 * n,
		BytesRead:    5 * n,
		BytesWritten: 6 * n,
		Records:      ossl.RecordStats{Direct: 7 * n, Libssl: 8 * n, Kernel: 9 * n},
		SessionCache: ossl.SessionCacheStats{Hits: 10 * n, Misses: 11 * n, Errors: 12 * n, Puts: 13 * n, PutErrors: 14 * n},
		ChainCache:   ossl.ChainCacheStats{Hits: 15 * n, Misses: 16 * n},
		Revocation:   ossl.RevocationStats{Revoked: 17 * n, HardFails: 18 * n, SoftFails: 19 * n},

		CertificateCache:   ossl.ConversionCacheStats{Misses: 17 * n, Evictions: 18 * n},
		ConfigurationCache: ossl.ConversionCacheStats{Misses: 19 * n, Evictions: 20 * n},
	}
}

func TestSum(t *testing.T) {
	client := stats(1)
	client.Handshakes[0].Server, client.Failures[0].Failure.Class, client.Durations[0].Resumed = false, ossl.FailureOther, true
	both := stats(3)
	both.Handshakes = append(stats(2).Handshakes, client.Handshakes...)
	both.Failures = append(stats(2).Failures, client.Failures...)
	both.Durations = append(stats(2).Durations, client.Durations...)
	zero := ossl.Stats{Durations: []ossl.DurationStats{}}
	for _, c := range []struct {
		name       string
		a, b, want ossl.Stats
	}{
		{"nothing", ossl.Stats{}, ossl.Stats{}, zero},
		{"something and nothing", stats(1), ossl.Stats{}, stats(1)},
		{"nothing and something", ossl.Stats{}, stats(1), stats(1)},
		{"the same", stats(1), stats(2), stats(3)},
		{"others", stats(2), client, both},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := c.a, c.b
			if got := metrics.Sum(a, b); !reflect.DeepEqual(got, c.want) {
				t.Errorf("the sum is\n%+v, want\n%+v", got, c.want)
			}
		})
	}
	a := stats(1)
	metrics.Sum(a, stats(2))
	if !reflect.DeepEqual(a, stats(1)) {
		t.Errorf("Sum has changed its argument: %+v", a)
	}
}

// TestSumHasEachField fails if Stats get a field that Sum doesn't add.
func TestSumHasEachField(t *testing.T) {
	v := reflect.ValueOf(metrics.Sum(stats(1), stats(1)))
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is zero", v.Type().Field(i).Name)
		}
	}
	if set := reflect.ValueOf(stats(1)); set.NumField() != v.NumField() {
		t.Error("stats sets other fields")
	}
}
