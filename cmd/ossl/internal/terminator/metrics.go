package terminator

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// A collector is the prometheus.Collector of a Server. docs/SERVE.md explains its metrics.
type collector struct{ server *Server }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ossl_serve_"+name, help, labels, nil)
}

var (
	descConnections = describe("connections", "Connections that are open, those in a handshake included.")
	descLimited     = describe("limited_connections_total",
		"Connections that met a limit: they waited for the limit connections, and were closed for the others.", "limit")
	descRequests = describe("limited_requests_total",
		"Requests that met a limit: they waited for address-requests, and were answered with 503 for backend-conns.", "limit")
	descRedirects = describe("redirects_total", "Requests of plain HTTP, which were redirected or refused.")
	descFormer    = describe("former_connections_total",
		"Connections of the former process: those that moved here, and those of TCP that stayed there, by the reason.", "result")
	descReloads = describe("reloads_total", "Reloads of the configuration.", "result")
	descChanges = describe("certificate_changes_total",
		"Changes of certificate files while the server ran; those that are refused have no effect.", "result")
	descLists = describe("crl_changes_total",
		"Changes of the files of revocation lists while the server ran; those that are refused have no effect.", "result")
	descListExpiry = describe("crl_next_update_timestamp_seconds",
		"The first time at which a revocation list in use expires, in Unix time.")
	descExpiry = describe("certificate_expiry_timestamp_seconds",
		"The end of the validity of a certificate in use, in Unix time.", "site", "certificate")
	descTicketKey = describe("ticket_key_start_timestamp_seconds",
		"The Unix time at which the key that seals tickets began to seal in this process.")
	descACME = describe("acme_orders_total", "Orders of certificates by ACME.", "result")
	descLog  = describe("lost_log_lines_total",
		"Lines of the log that were lost, because its reader was too slow or because of an error.", "reason")
)

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descConnections, descLimited, descRequests, descRedirects, descReloads, descChanges, descExpiry, descTicketKey, descACME,
		descLog, descLists, descListExpiry, descFormer,
	} {
		ch <- d
	}
	describeRedis(ch)
	describeBackends(ch)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	s := c.server
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	count := func(d *prometheus.Desc, value uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	gauge(descConnections, float64(s.gate.slots.inUse()))
	for _, limit := range []string{"connections", "idle", "per-address", "address-rate", "accept-proxy"} {
		count(descLimited, s.gate.refused.times(limit), limit)
	}
	count(descLimited, s.limited.times("http2-frames"), "http2-frames")
	count(descLimited, s.limited.times("client-allow"), "client-allow")
	for _, limit := range []string{"address-requests", "backend-conns"} {
		count(descRequests, s.limited.times(limit), limit)
	}
	count(descRedirects, s.redirected.Load())
	if s.taker != nil {
		moved, stayed := s.taker.counts()
		count(descFormer, moved, "moved")
		for reason, n := range stayed {
			count(descFormer, n, reason)
		}
	}
	count(descReloads, s.reloads.Load(), "succeeded")
	count(descReloads, s.failedReloads.Load(), "failed")
	if w := s.logWriter.Load(); w != nil {
		lost, failed := w.Losses()
		count(descLog, lost, "slow")
		count(descLog, failed, "error")
	}

	if r := s.redis.Load(); r != nil {
		r.collect(gauge, count)
	}

	s.counting.Lock()
	g := s.current.Load()
	changes := s.changes.plus(g.changes())
	lists, listChanges := s.crls, s.listChanges
	s.counting.Unlock()
	for _, l := range lists {
		listChanges = listChanges.plus(l.changes())
	}
	if first := lists.nextUpdate(); !first.IsZero() {
		gauge(descListExpiry, float64(first.Unix()))
		count(descLists, listChanges.Used, "used")
		count(descLists, listChanges.Refused, "refused")
	}
	count(descChanges, changes.Used, "used")
	count(descChanges, changes.Refused, "refused")
	if len(g.acme) > 0 {
		count(descACME, s.acme.obtained.Load(), "succeeded")
		count(descACME, s.acme.failed.Load(), "failed")
	}
	for _, site := range g.sites {
		name := site.plan.name()
		for j, end := range site.certificates.ends() {
			gauge(descExpiry, float64(end.Unix()), name, strconv.Itoa(j+1))
		}
		if site.backends != nil {
			site.backends.collect(name, gauge, count)
		}
	}
	if ring := s.sealing.Load(); ring != nil {
		if since := ring.SealingSince(); !since.IsZero() {
			gauge(descTicketKey, float64(since.UnixMilli())/1000)
		}
	}
}

// changeCounts count the changes of certificates' files.
type changeCounts struct{ Used, Refused uint64 }

func (c changeCounts) plus(d changeCounts) changeCounts {
	return changeCounts{Used: c.Used + d.Used, Refused: c.Refused + d.Refused}
}

// changes returns the changes of a generation's certificates since it began.
func (g *generation) changes() (sum changeCounts) {
	seen := map[*certificates]bool{} // sites share them
	for _, s := range g.sites {
		if seen[s.certificates] {
			continue
		}
		seen[s.certificates] = true
		for _, r := range s.certificates.loaded().files {
			stats := r.Stats()
			sum = sum.plus(changeCounts{stats.Used - 1, stats.Refused}) // the first contents are no change
		}
	}
	return sum
}
