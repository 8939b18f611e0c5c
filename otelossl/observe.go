package otelossl

import (
	"context"
	"crypto/tls"
	"errors"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
)

// The attributes that the semantic conventions don't have.
const (
	contextKey    = attribute.Key("ossl.context.name")
	roleKey       = attribute.Key("ossl.role")
	alertKey      = attribute.Key("ossl.alert")
	resumptionKey = attribute.Key("ossl.resumption")
	retryKey      = attribute.Key("ossl.hello_retry")
	recordsKey    = attribute.Key("ossl.record_path")
	operationKey  = attribute.Key("ossl.session_cache.operation")
	resultKey     = attribute.Key("ossl.cache.result")
	cacheKey      = attribute.Key("ossl.cache.name")
	verdictKey    = attribute.Key("ossl.revocation.verdict")
	watchKey      = attribute.Key("ossl.watch.name")
	changeKey     = attribute.Key("ossl.watch.result")
)

// instruments are the instruments for statistics, which are read when metrics are collected.
type instruments struct {
	handshakes, failures, broken metric.Int64ObservableCounter
	records, kernel, io          metric.Int64ObservableCounter
	sessions, chains, revocation metric.Int64ObservableCounter
	conversions, evictions       metric.Int64ObservableCounter
	open                         metric.Int64ObservableUpDownCounter
}

// observe registers a callback that reads the source's statistics.
func observe(meter metric.Meter, source metrics.Source) (metric.Registration, error) {
	var in instruments
	var refused error
	counter := func(name, unit, description string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		refused = errors.Join(refused, err)
		return c
	}
	in.handshakes = counter("ossl.tls_handshakes", "{handshake}", "Handshakes that succeeded.")
	in.failures = counter("ossl.tls_handshake.failures", "{handshake}", "Handshakes that failed.")
	in.broken = counter("ossl.connection.failures", "{connection}", "Connections that an error ended after the handshake.")
	in.records = counter("ossl.connections", "{connection}", "Connections by the code that seals and opens their records.")
	in.kernel = counter("ossl.kernel_tls.connections", "{connection}", "Connections whose sent records the kernel seals.")
	in.io = counter("ossl.io", "By", "Application data that was read and written.")
	in.sessions = counter("ossl.session_cache.operations", "{operation}", "Calls of a server's session cache.")
	in.chains = counter("ossl.chain_cache.lookups", "{lookup}", "Look-ups in the cache of verified certificate chains.")
	in.revocation = counter("ossl.revocation.verdicts", "{verification}",
		"Verifications of peers in which revocation lists found fault.")
	in.conversions = counter("ossl.conversions", "{conversion}",
		"Certificates and configurations that were converted for OpenSSL.")
	in.evictions = counter("ossl.conversion.evictions", "{eviction}",
		"Converted certificates and configurations that have left their cache since it had no room.")
	open, err := meter.Int64ObservableUpDownCounter("ossl.active_connections", metric.WithUnit("{connection}"),
		metric.WithDescription("Connections whose handshake has succeeded and that are not closed."))
	if refused = errors.Join(refused, err); refused != nil {
		return nil, refused
	}
	in.open = open
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, n := range source.Stats() {
			in.report(observation{o, n.Name}, n.Stats)
		}
		return nil
	}, in.handshakes, in.failures, in.broken, in.records, in.kernel, in.io, in.sessions, in.chains, in.revocation,
		in.conversions, in.evictions, in.open)
}

func (in *instruments) report(o observation, s ossl.Stats) {
	for _, h := range s.Handshakes {
		attrs := negotiated(h.Version, h.CipherSuite, h.CurveID, h.Resumption != ossl.NotResumed)
		if h.Resumption != ossl.NotResumed {
			attrs = append(attrs, resumptionKey.String(string(h.Resumption)))
		}
		o.count(in.handshakes, h.Count, append(attrs, role(h.Server), retryKey.Bool(h.HelloRetry))...)
	}
	for _, f := range s.Failures {
		o.count(in.failures, f.Count, append(failed(f.Failure), role(f.Server))...)
	}
	for _, f := range s.Broken {
		o.count(in.broken, f.Count, append(failed(f.Failure), role(f.Server))...)
	}
	o.observer.ObserveInt64(in.open, int64(s.OpenConns), o.with())
	o.count(in.records, s.Records.Direct, recordsKey.String("ossl"))
	o.count(in.records, s.Records.Libssl, recordsKey.String("libssl"))
	o.count(in.kernel, s.Records.Kernel)
	o.count(in.io, s.BytesRead, semconv.NetworkIODirectionReceive)
	o.count(in.io, s.BytesWritten, semconv.NetworkIODirectionTransmit)
	c := s.SessionCache
	o.count(in.sessions, c.Hits, operationKey.String("get"), resultKey.String("hit"))
	o.count(in.sessions, c.Misses, operationKey.String("get"), resultKey.String("miss"))
	o.count(in.sessions, c.Errors, operationKey.String("get"), resultKey.String("error"))
	o.count(in.sessions, c.Puts, operationKey.String("put"), resultKey.String("ok"))
	o.count(in.sessions, c.PutErrors, operationKey.String("put"), resultKey.String("error"))
	o.count(in.chains, s.ChainCache.Hits, resultKey.String("hit"))
	o.count(in.chains, s.ChainCache.Misses, resultKey.String("miss"))
	o.count(in.revocation, s.Revocation.Revoked, verdictKey.String("revoked"))
	o.count(in.revocation, s.Revocation.HardFails, verdictKey.String("hard_fail"))
	o.count(in.revocation, s.Revocation.SoftFails, verdictKey.String("soft_fail"))
	o.count(in.conversions, s.CertificateCache.Misses, cacheKey.String("certificates"))
	o.count(in.conversions, s.ConfigurationCache.Misses, cacheKey.String("configurations"))
	o.count(in.evictions, s.CertificateCache.Evictions, cacheKey.String("certificates"))
	o.count(in.evictions, s.ConfigurationCache.Evictions, cacheKey.String("configurations"))
}

// An observation is of the Contexts with a name.
type observation struct {
	observer metric.Observer
	name     string
}

func (o observation) count(c metric.Int64ObservableCounter, n uint64, attrs ...attribute.KeyValue) {
	o.observer.ObserveInt64(c, int64(n), o.with(attrs...))
}

func (o observation) with(attrs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(attrs, named(o.name)...)...)
}

// named returns the attribute for a Context's name, if it has one.
func named(name string) []attribute.KeyValue {
	if name == "" {
		return nil
	}
	return []attribute.KeyValue{contextKey.String(name)}
}

func role(server bool) attribute.KeyValue { return roleKey.String(metrics.Role(server)) }

// negotiated returns the attributes for the parameters of a handshake that succeeded.
func negotiated(version, suite uint16, curve tls.CurveID, resumed bool) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		semconv.TLSProtocolNameTLS, semconv.TLSProtocolVersion(metrics.Version(version)),
		semconv.TLSCipher(metrics.CipherSuite(suite)), semconv.TLSResumed(resumed),
	}
	if curve != 0 {
		attrs = append(attrs, semconv.TLSCurve(metrics.Curve(curve)))
	}
	return attrs
}

// failed returns the attributes for a failure.
func failed(f ossl.Failure) []attribute.KeyValue {
	attrs := []attribute.KeyValue{semconv.ErrorTypeKey.String(string(f.Class))}
	if f.Alert != 0 {
		attrs = append(attrs, alertKey.String(metrics.Alert(f.Alert)))
	}
	return attrs
}
