package otelossl

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/ossl-go/ossl"
)

// Watch exports the statistics of an [ossl.Watch], or of a Reloader of httptls, until the result is
// unregistered. The metrics have the name, such as "roots", as "ossl.watch.name".
func (i *Instrumentation) Watch(name string, watch interface{ Stats() ossl.WatchStats }) (metric.Registration, error) {
	changes, err := i.meter.Int64ObservableCounter("ossl.watch.changes", metric.WithUnit("{change}"),
		metric.WithDescription("Contents of files that came into use, the first ones included, or were refused."))
	refused := err
	gauge := func(name, unit, description string) metric.Float64ObservableGauge {
		g, err := i.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		refused = errors.Join(refused, err)
		return g
	}
	since := gauge("ossl.watch.age", "s", "Time since the contents in use came into use.")
	checked := gauge("ossl.watch.check.age", "s", "Time since the last check of the files ended.")
	failing := gauge("ossl.watch.failing", "1",
		"1 if the contents in the files can't be used, so that former ones stay in use; or 0.")
	if refused != nil {
		return nil, refused
	}
	named := metric.WithAttributes(watchKey.String(name))
	return i.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := watch.Stats()
		o.ObserveInt64(changes, int64(s.Used), named, metric.WithAttributes(changeKey.String("used")))
		o.ObserveInt64(changes, int64(s.Refused), named, metric.WithAttributes(changeKey.String("refused")))
		if !s.Since.IsZero() {
			o.ObserveFloat64(since, time.Since(s.Since).Seconds(), named)
		}
		if !s.Checked.IsZero() {
			o.ObserveFloat64(checked, time.Since(s.Checked).Seconds(), named)
		}
		broken := 0.0
		if s.Err != nil {
			broken = 1
		}
		o.ObserveFloat64(failing, broken, named)
		return nil
	}, changes, since, checked, failing)
}
