package promossl

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ossl-go/ossl"
)

// A watchCollector is a collector of the statistics of a Watch.
type watchCollector struct {
	watch                         interface{ Stats() ossl.WatchStats }
	changes, since, checked, fail *prometheus.Desc
}

// NewWatchCollector returns a collector of the statistics of an [ossl.Watch], or of a Reloader of
// httptls. Its metrics have the label "watch" with the name, such as "roots", which tells one
// registered collector from the others.
func NewWatchCollector(name string, watch interface{ Stats() ossl.WatchStats }) prometheus.Collector {
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ossl_watch_"+metric, help, labels, prometheus.Labels{"watch": name})
	}
	return &watchCollector{
		watch:   watch,
		changes: desc("changes_total", "Contents of files that came into use, the first ones included, or were refused.", "result"),
		since:   desc("used_timestamp_seconds", "When the contents in use came into use."),
		checked: desc("checked_timestamp_seconds", "When the last check of the files ended."),
		fail:    desc("failing", "1 if the contents in the files can't be used, so that former ones stay in use; or 0."),
	}
}

// Describe implements [prometheus.Collector].
func (c *watchCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.changes, c.since, c.checked, c.fail} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *watchCollector) Collect(ch chan<- prometheus.Metric) {
	stats, s := c.watch.Stats(), scrape{ch: ch}
	s.counter(c.changes, stats.Used, "used")
	s.counter(c.changes, stats.Refused, "refused")
	for d, at := range map[*prometheus.Desc]time.Time{c.since: stats.Since, c.checked: stats.Checked} {
		if !at.IsZero() {
			s.send(d, prometheus.GaugeValue, float64(at.UnixMilli())/1000)
		}
	}
	failing := 0.0
	if stats.Err != nil {
		failing = 1
	}
	s.send(c.fail, prometheus.GaugeValue, failing)
}
