package otelossl_test

import (
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
	"github.com/ossl-go/ossl/otelossl"
)

// fixed is a Source whose numbers don't change.
type fixed []metrics.Named

func (f fixed) Stats() []metrics.Named { return f }

var known = ossl.Stats{
	Handshakes: []ossl.HandshakeStats{
		{Version: tls.VersionTLS12, CipherSuite: tls.TLS_RSA_WITH_AES_128_GCM_SHA256, Count: 1},
		{Server: true, Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256, CurveID: tls.X25519,
			Resumption: ossl.ResumedTicket, HelloRetry: true, Count: 2},
	},
	Failures: []ossl.FailureStats{
		{Server: true, Failure: ossl.Failure{Class: ossl.FailureRefused, Alert: 70}, Count: 3},
		{Server: true, Failure: ossl.Failure{Class: ossl.FailureNotTLS}, Count: 4},
	},
	Durations:    []ossl.DurationStats{{Server: true, Count: 3, Sum: time.Second}},
	Broken:       []ossl.FailureStats{{Failure: ossl.Failure{Class: ossl.FailureTruncated}, Count: 5}},
	OpenConns:    6,
	BytesRead:    7,
	BytesWritten: 8,
	Records:      ossl.RecordStats{Direct: 9, Libssl: 10, Kernel: 11},
	SessionCache: ossl.SessionCacheStats{Hits: 12, Misses: 13, Errors: 14, Puts: 15, PutErrors: 16},
	ChainCache:   ossl.ChainCacheStats{Hits: 17, Misses: 18},
	Revocation:   ossl.RevocationStats{Revoked: 23, HardFails: 24, SoftFails: 25},

	CertificateCache:   ossl.ConversionCacheStats{Misses: 19, Evictions: 20},
	ConfigurationCache: ossl.ConversionCacheStats{Misses: 21, Evictions: 22},
}

// TestObservedStats compares all metrics of known numbers.
func TestObservedStats(t *testing.T) {
	for _, c := range []struct{ name, first, attributes string }{
		{"process", "", ""},
		{"web", "ossl.context.name=web", "ossl.context.name=web,"},
	} {
		t.Run(c.name, func(t *testing.T) {
			named := fixed{{Stats: known}}
			if c.first != "" {
				named[0].Name = c.name
			}
			reader := sdkmetric.NewManualReader()
			tel := newInstrumentation(t, named, otelossl.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
			compare(t, collect(t, reader),
				point{"ossl.tls_handshakes", "{handshake}", c.attributes + "ossl.hello_retry=false,ossl.role=client," +
					"tls.cipher=TLS_RSA_WITH_AES_128_GCM_SHA256,tls.protocol.name=tls,tls.protocol.version=1.2,tls.resumed=false", 1},
				point{"ossl.tls_handshakes", "{handshake}", c.attributes + "ossl.hello_retry=true,ossl.resumption=ticket,ossl.role=server," +
					"tls.cipher=TLS_AES_128_GCM_SHA256,tls.curve=x25519,tls.protocol.name=tls,tls.protocol.version=1.3,tls.resumed=true", 2},
				point{"ossl.tls_handshake.failures", "{handshake}", "error.type=refused,ossl.alert=protocol_version," + c.attributes +
					"ossl.role=server", 3},
				point{"ossl.tls_handshake.failures", "{handshake}", "error.type=not_tls," + c.attributes + "ossl.role=server", 4},
				point{"ossl.connection.failures", "{connection}", "error.type=truncated," + c.attributes + "ossl.role=client", 5},
				point{"ossl.active_connections", "{connection}", c.first, 6},
				point{"ossl.io", "By", join("network.io.direction=receive", c.first), 7},
				point{"ossl.io", "By", join("network.io.direction=transmit", c.first), 8},
				point{"ossl.connections", "{connection}", c.attributes + "ossl.record_path=ossl", 9},
				point{"ossl.connections", "{connection}", c.attributes + "ossl.record_path=libssl", 10},
				point{"ossl.kernel_tls.connections", "{connection}", c.first, 11},
				point{"ossl.session_cache.operations", "{operation}",
					join("ossl.cache.result=hit", c.first) + ",ossl.session_cache.operation=get", 12},
				point{"ossl.session_cache.operations", "{operation}",
					join("ossl.cache.result=miss", c.first) + ",ossl.session_cache.operation=get", 13},
				point{"ossl.session_cache.operations", "{operation}",
					join("ossl.cache.result=error", c.first) + ",ossl.session_cache.operation=get", 14},
				point{"ossl.session_cache.operations", "{operation}",
					join("ossl.cache.result=ok", c.first) + ",ossl.session_cache.operation=put", 15},
				point{"ossl.session_cache.operations", "{operation}",
					join("ossl.cache.result=error", c.first) + ",ossl.session_cache.operation=put", 16},
				point{"ossl.chain_cache.lookups", "{lookup}", join("ossl.cache.result=hit", c.first), 17},
				point{"ossl.chain_cache.lookups", "{lookup}", join("ossl.cache.result=miss", c.first), 18},
				point{"ossl.revocation.verdicts", "{verification}", c.attributes + "ossl.revocation.verdict=revoked", 23},
				point{"ossl.revocation.verdicts", "{verification}", c.attributes + "ossl.revocation.verdict=hard_fail", 24},
				point{"ossl.revocation.verdicts", "{verification}", c.attributes + "ossl.revocation.verdict=soft_fail", 25},
				point{"ossl.conversions", "{conversion}", join("ossl.cache.name=certificates", c.first), 19},
				point{"ossl.conversions", "{conversion}", join("ossl.cache.name=configurations", c.first), 21},
				point{"ossl.conversion.evictions", "{eviction}", join("ossl.cache.name=certificates", c.first), 20},
				point{"ossl.conversion.evictions", "{eviction}", join("ossl.cache.name=configurations", c.first), 22},
			)
			if err := tel.Close(); err != nil {
				t.Error(err)
			}
			compare(t, collect(t, reader))
		})
	}
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + "," + b
}

func newInstrumentation(t testing.TB, source metrics.Source, opts ...otelossl.Option) *otelossl.Instrumentation {
	t.Helper()
	tel, err := otelossl.New(source, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

// A refusing provider refuses histograms, as a provider with a view of an invalid aggregation does.
type refusing struct {
	noop.MeterProvider
	callbacks int
}

type refusingMeter struct {
	noop.Meter
	provider *refusing
}

func (r *refusing) Meter(string, ...metric.MeterOption) metric.Meter {
	return refusingMeter{provider: r}
}

func (refusingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return noop.Float64Histogram{}, errors.New("refused")
}

func (m refusingMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	m.provider.callbacks++
	return noop.Registration{}, nil
}

// TestNewLeavesNothing checks that New registers nothing if it returns an error: nobody could undo
// it.
func TestNewLeavesNothing(t *testing.T) {
	provider := new(refusing)
	if tel, err := otelossl.New(metrics.Process, otelossl.WithMeterProvider(provider)); err == nil || tel != nil {
		t.Errorf("New returns %v, %v", tel, err)
	}
	if provider.callbacks != 0 {
		t.Error("the source is registered")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		source metrics.Source
		opts   []otelossl.Option
	}{
		{"no source", nil, nil},
		{"no MeterProvider", metrics.Process, []otelossl.Option{otelossl.WithMeterProvider(nil)}},
		{"no TracerProvider", metrics.Process, []otelossl.Option{otelossl.WithTracerProvider(nil)}},
		{"no server name", metrics.Process, []otelossl.Option{otelossl.WithServerNames()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if tel, err := otelossl.New(c.source, c.opts...); err == nil || tel != nil {
				t.Errorf("New returns %v, %v", tel, err)
			}
		})
	}
}
