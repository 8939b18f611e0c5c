package otelossl

import (
	"errors"
	"runtime/debug"
	"sync"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
)

// ScopeName is the name of the instrumentation scope.
const ScopeName = "github.com/ossl-go/ossl/otelossl"

// An Instrumentation exports the statistics of a [metrics.Source], and the events of the Contexts
// that have its option. It may be used by any number of goroutines.
type Instrumentation struct {
	meter        metric.Meter
	tracer       trace.Tracer
	durations    metric.Float64Histogram
	sessionCalls metric.Float64Histogram
	registration metric.Registration

	names map[string]bool // of servers, that may be attributes
	sets  sync.Map        // of labels to metric.MeasurementOption
}

// New returns an Instrumentation, and registers the source's statistics with the provider of the
// metrics until [Instrumentation.Close]. It returns an error if the source is nil, or if an
// option or an instrument is refused. A second Instrumentation of the same connections and provider
// would count them twice.
func New(source metrics.Source, opts ...Option) (*Instrumentation, error) {
	if source == nil {
		return nil, errors.New("otelossl: New needs a source: metrics.Process, or a *metrics.Contexts")
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	meter := c.meters.Meter(ScopeName, metric.WithInstrumentationVersion(version()), metric.WithSchemaURL(semconv.SchemaURL))
	i := &Instrumentation{
		meter:  meter,
		tracer: c.traces.Tracer(ScopeName, trace.WithInstrumentationVersion(version()), trace.WithSchemaURL(semconv.SchemaURL)),
		names:  c.names,
	}
	i.durations, err = meter.Float64Histogram("ossl.tls_handshake.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of handshakes. The time of a server begins with the client's first bytes."),
		metric.WithExplicitBucketBoundaries(bounds...))
	refused := err
	i.sessionCalls, err = meter.Float64Histogram("ossl.session_cache.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of the calls of a server's session cache."), metric.WithExplicitBucketBoundaries(bounds...))
	if refused = errors.Join(refused, err); refused != nil { // before the source is registered
		return nil, refused
	}
	if i.registration, err = observe(meter, source); err != nil {
		return nil, err
	}
	return i, nil
}

// bounds are the bounds in ossl.DurationStats, in seconds.
var bounds = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Events returns the option for a Context that has its durations and spans exported. They have the
// name as "ossl.context.name", unless it is empty.
func (i *Instrumentation) Events(name string) ossl.Option {
	return ossl.WithEvents(func(e ossl.Event) { i.event(name, e) })
}

// Close stops the export of the source's statistics. Contexts with the option continue to record
// durations and spans, and Watches their metrics.
func (i *Instrumentation) Close() error { return i.registration.Unregister() }

// version returns the version of this module in the program, or "" if it is unknown.
var version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == ScopeName {
			return m.Version
		}
	}
	return ""
})
