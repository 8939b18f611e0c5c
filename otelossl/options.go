package otelossl

import (
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// An Option sets a property of an [Instrumentation].
type Option func(*config) error

type config struct {
	meters metric.MeterProvider
	traces trace.TracerProvider
	names  map[string]bool
}

func newConfig(opts []Option) (config, error) {
	c := config{meters: otel.GetMeterProvider(), traces: otel.GetTracerProvider(), names: map[string]bool{}}
	for _, o := range opts {
		if err := o(&c); err != nil {
			return config{}, err
		}
	}
	return c, nil
}

// WithMeterProvider sets the provider of the metrics in place of the global one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) error {
		if p == nil {
			return errors.New("otelossl: WithMeterProvider has no provider")
		}
		c.meters = p
		return nil
	}
}

// WithTracerProvider sets the provider of the spans in place of the global one. Package
// go.opentelemetry.io/otel/trace/noop has one that makes no spans.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) error {
		if p == nil {
			return errors.New("otelossl: WithTracerProvider has no provider")
		}
		c.traces = p
		return nil
	}
}

// WithServerNames sets the attribute "server.address" of durations and spans to the server name
// that the client has sent, if it is among names, and else to "_OTHER". By default there is no such
// attribute: a server's clients choose the name. The option may be given several times.
func WithServerNames(names ...string) Option {
	return func(c *config) error {
		if len(names) == 0 {
			return errors.New("otelossl: WithServerNames has no name")
		}
		for _, n := range names {
			c.names[n] = true
		}
		return nil
	}
}
