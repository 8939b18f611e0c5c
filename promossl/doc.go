// Package promossl gives Prometheus the statistics of ossl's connections: handshakes by their
// parameters, failures by their reasons, durations, bytes, and caches.
//
//	prometheus.MustRegister(promossl.NewCollector(metrics.Process))
//
// exports the metrics of the process. With a [metrics.Contexts], each Context has its own, with the
// label "context":
//
//	var contexts metrics.Contexts
//	prometheus.MustRegister(promossl.NewCollector(&contexts))
//	...
//	remove, err := contexts.Add("web", ctx)
//
// A scrape costs some ten microseconds, and a handshake costs nothing more: the numbers are those that
// ossl counts in any case. No label has a value that the peer chooses freely. docs/OBSERVABILITY.md
// lists the metrics.
package promossl
