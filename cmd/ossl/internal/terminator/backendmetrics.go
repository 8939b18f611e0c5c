package terminator

import "github.com/prometheus/client_golang/prometheus"

var (
	descBackendUp = describe("backend_up",
		"Whether a backend is well, as far as is known: 0 while it fails, or its checks do.", "site", "backend")
	descAnswers = describe("backend_answers_total",
		"Requests that a backend has answered, or connections of TCP that it has accepted.", "site", "backend")
	descFailures = describe("backend_failures_total",
		"Requests that a backend has not answered, or connections of TCP that have failed.", "site", "backend")
	descRetries = describe("backend_retries_total",
		"Those of the failures after which another backend was tried.", "site", "backend")
)

func describeBackends(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBackendUp, descAnswers, descFailures, descRetries} {
		ch <- d
	}
}

// collect collects the metrics of a site's backends.
func (p *backends) collect(
	site string, gauge func(*prometheus.Desc, float64, ...string), count func(*prometheus.Desc, uint64, ...string),
) {
	for _, m := range p.members {
		up := 0.0
		if m.up() {
			up = 1
		}
		gauge(descBackendUp, up, site, m.name)
		count(descAnswers, m.answers.Load(), site, m.name)
		count(descFailures, m.failures.Load(), site, m.name)
		count(descRetries, m.retries.Load(), site, m.name)
	}
}
