package promossl

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
)

// A Collector is a [prometheus.Collector] of the statistics of a [metrics.Source].
type Collector struct {
	source metrics.Source
	named  bool // metrics have the label "context"
	descs
}

// descs describe the metrics.
type descs struct {
	handshakes, failures, durations, broken               *prometheus.Desc
	open, read, written, records, kernel                  *prometheus.Desc
	sessionGets, sessionPuts, chains, revocation, openssl *prometheus.Desc
	conversions, evictions                                *prometheus.Desc
}

// NewCollector returns a Collector of the source. Its metrics have the label "context", with the
// name of the Context, unless the source is [metrics.Process]. A registry doesn't accept both a
// Collector with the label and one without it, so it never counts a connection twice.
func NewCollector(source metrics.Source) *Collector {
	c := &Collector{source: source, named: source != metrics.Process}
	c.handshakes = c.desc("tls_handshakes_total", "Handshakes that succeeded.",
		"role", "version", "cipher_suite", "curve", "resumption", "hello_retry")
	c.failures = c.desc("tls_handshake_failures_total", "Handshakes that failed.", "role", "class", "alert")
	c.durations = c.desc("tls_handshake_seconds",
		"Durations of the handshakes that succeeded; those of a server begin with the client's first bytes.", "role", "resumed")
	c.broken = c.desc("tls_connection_failures_total", "Connections that an error ended after the handshake.",
		"role", "class", "alert")
	c.open = c.desc("tls_open_connections", "Connections whose handshake has succeeded and that are not closed.")
	c.read = c.desc("tls_read_bytes_total", "Bytes of application data that were read.")
	c.written = c.desc("tls_written_bytes_total", "Bytes of application data that were written.")
	c.records = c.desc("tls_connections_total", "Connections by the code that seals and opens their records: ossl itself or libssl.",
		"records")
	c.kernel = c.desc("tls_kernel_connections_total", "Connections among those of ossl itself whose sent records the kernel seals.")
	c.sessionGets = c.desc("tls_session_cache_gets_total", "Look-ups in the server's session cache.", "result")
	c.sessionPuts = c.desc("tls_session_cache_puts_total", "Sessions that the server gave its session cache.", "result")
	c.chains = c.desc("tls_chain_cache_lookups_total", "Look-ups in the cache of verified certificate chains.", "result")
	c.revocation = c.desc("tls_revocation_verdicts_total",
		"Verifications of peers in which revocation lists found fault.", "verdict")
	c.conversions = c.desc("tls_conversions_total", "Certificates and configurations that were converted for OpenSSL.", "cache")
	c.evictions = c.desc("tls_conversion_evictions_total",
		"Converted certificates and configurations that have left their cache since it had no room.", "cache")
	c.openssl = prometheus.NewDesc("ossl_openssl_info", "The OpenSSL that the process has loaded; the value is always 1.",
		[]string{"version", "description"}, nil)
	return c
}

// desc describes a metric, with the label "context" in front of the others.
func (c *Collector) desc(name, help string, labels ...string) *prometheus.Desc {
	if c.named {
		labels = append([]string{"context"}, labels...)
	}
	return prometheus.NewDesc("ossl_"+name, help, labels, nil)
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.handshakes, c.failures, c.durations, c.broken, c.open, c.read, c.written, c.records, c.kernel,
		c.sessionGets, c.sessionPuts, c.chains, c.revocation, c.conversions, c.evictions, c.openssl,
	} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	used := false
	for _, n := range c.source.Stats() {
		s := scrape{ch: ch}
		if c.named {
			s.labels = []string{n.Name}
		}
		c.collect(s, n.Stats)
		used = used || len(n.Stats.Handshakes) > 0
	}
	// Library loads OpenSSL. A later Context may want another one.
	if !used {
		return
	}
	if lib, err := ossl.Library(); err == nil {
		ch <- prometheus.MustNewConstMetric(c.openssl, prometheus.GaugeValue, 1, lib.Version, lib.VersionText)
	}
}

func (c *Collector) collect(s scrape, stats ossl.Stats) {
	for _, h := range stats.Handshakes {
		s.counter(c.handshakes, h.Count, metrics.Role(h.Server), metrics.Version(h.Version), metrics.CipherSuite(h.CipherSuite),
			metrics.Curve(h.CurveID), resumption(h.Resumption), strconv.FormatBool(h.HelloRetry))
	}
	for _, f := range stats.Failures {
		s.counter(c.failures, f.Count, metrics.Role(f.Server), string(f.Failure.Class), metrics.Alert(f.Failure.Alert))
	}
	for _, f := range stats.Broken {
		s.counter(c.broken, f.Count, metrics.Role(f.Server), string(f.Failure.Class), metrics.Alert(f.Failure.Alert))
	}
	for _, d := range stats.Durations {
		s.histogram(c.durations, d, metrics.Role(d.Server), strconv.FormatBool(d.Resumed))
	}
	s.send(c.open, prometheus.GaugeValue, float64(stats.OpenConns))
	s.counter(c.read, stats.BytesRead)
	s.counter(c.written, stats.BytesWritten)
	s.counter(c.records, stats.Records.Direct, "ossl")
	s.counter(c.records, stats.Records.Libssl, "libssl")
	s.counter(c.kernel, stats.Records.Kernel)
	s.counter(c.sessionGets, stats.SessionCache.Hits, "hit")
	s.counter(c.sessionGets, stats.SessionCache.Misses, "miss")
	s.counter(c.sessionGets, stats.SessionCache.Errors, "error")
	s.counter(c.sessionPuts, stats.SessionCache.Puts, "ok")
	s.counter(c.sessionPuts, stats.SessionCache.PutErrors, "error")
	s.counter(c.chains, stats.ChainCache.Hits, "hit")
	s.counter(c.chains, stats.ChainCache.Misses, "miss")
	s.counter(c.revocation, stats.Revocation.Revoked, "revoked")
	s.counter(c.revocation, stats.Revocation.HardFails, "hard_fail")
	s.counter(c.revocation, stats.Revocation.SoftFails, "soft_fail")
	s.counter(c.conversions, stats.CertificateCache.Misses, "certificates")
	s.counter(c.conversions, stats.ConfigurationCache.Misses, "configurations")
	s.counter(c.evictions, stats.CertificateCache.Evictions, "certificates")
	s.counter(c.evictions, stats.ConfigurationCache.Evictions, "configurations")
}

func resumption(r ossl.Resumption) string {
	if r == ossl.NotResumed {
		return "none"
	}
	return string(r)
}

// A scrape sends the metrics of a Context, with its label.
type scrape struct {
	ch     chan<- prometheus.Metric
	labels []string
}

func (s scrape) counter(d *prometheus.Desc, n uint64, labels ...string) {
	s.send(d, prometheus.CounterValue, float64(n), labels...)
}

func (s scrape) send(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(d, t, v, s.with(labels)...)
	s.sendUnless(err, d, m)
}

func (s scrape) histogram(d *prometheus.Desc, h ossl.DurationStats, labels ...string) {
	buckets := make(map[float64]uint64, len(h.Buckets))
	for _, b := range h.Buckets {
		buckets[b.AtMost.Seconds()] = b.Count
	}
	m, err := prometheus.NewConstHistogram(d, h.Count, h.Sum.Seconds(), buckets, s.with(labels)...)
	s.sendUnless(err, d, m)
}

// sendUnless sends m, or an error: a Source of the program's own may have a name that no label can
// have. The registry reports the error.
func (s scrape) sendUnless(err error, d *prometheus.Desc, m prometheus.Metric) {
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	s.ch <- m
}

// with returns the Context's label, and labels.
func (s scrape) with(labels []string) []string {
	return append(s.labels[:len(s.labels):len(s.labels)], labels...)
}
