package promossl_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// newChart returns a chart of the series, the largest at the bottom.
func newChart(samples []sample, series map[string][]float64, color func(name string) int) *chart {
	c := &chart{width: 560, height: 230, names: inOrder(series)}
	for _, s := range samples[1:] {
		c.seconds = append(c.seconds, s.at.Seconds())
	}
	for _, name := range c.names {
		c.series, c.colors = append(c.series, series[name]), append(c.colors, color(name))
	}
	return c
}

// keys names the colors; an empty name stands for none.
func (c *chart) keys() (keys []key) {
	for i, name := range c.names {
		keys = append(keys, key{name, c.colors[i]})
	}
	return keys
}

func tiles(s sample) []tile {
	succeeded, failed := s.sum("ossl_tls_handshakes_total", server), s.sum(duringHandshake, server)
	resumed := succeeded - s.by("ossl_tls_handshakes_total", "resumption", server)["none"]
	p95 := quantile(.95, nil, s.buckets("ossl_tls_handshake_seconds", server))
	percent := func(part, whole float64) string { return fmt.Sprintf("%.1f %%", 100*part/max(1, whole)) }
	return []tile{
		{"handshakes succeeded", fmt.Sprintf("%.0f", succeeded)},
		{"handshakes failed", fmt.Sprintf("%.0f", failed)},
		{"of all handshakes failed", percent(failed, failed+succeeded)},
		{"of the others were resumed", percent(resumed, succeeded)},
		{"95 % of handshakes took less", fmt.Sprintf("%.1f ms", 1000*p95)},
		{"calls of the session cache failed", fmt.Sprintf("%.0f", s.by("ossl_tls_session_cache_gets_total", "result", server)["error"]+
			s.by("ossl_tls_session_cache_puts_total", "result", server)["error"])},
	}
}

func panels(samples []sample) []panel {
	fixed := func(colors map[string]int) func(string) int { return func(name string) int { return colors[name] } }
	failures := newChart(samples, rates(samples, duringHandshake, "class", server), fixed(colors))
	failures.width, failures.height, failures.unit = 1120, 280, "failures per second"
	resumption := newChart(samples, rates(samples, "ossl_tls_handshakes_total", "resumption", server),
		fixed(map[string]int{"none": 1, "ticket": 2, "id": 2}))
	resumption.unit = "handshakes per second"
	durations := newChart(samples, quantiles(samples), fixed(map[string]int{"95 %": 8, "median": 1}))
	durations.unit = "milliseconds"
	open := newChart(samples, map[string][]float64{"open": openConns(samples)}, fixed(map[string]int{"open": 5}))
	open.unit = "connections"
	gets := newChart(samples, rates(samples, "ossl_tls_session_cache_gets_total", "result", server),
		fixed(map[string]int{"hit": 2, "miss": 3, "error": 6}))
	gets.unit = "look-ups per second"
	return []panel{
		{"Handshakes that failed, by class", "At the server; ossl_tls_handshake_failures_total.",
			true, failures.keys(), failures.bars()},
		{"Handshakes that succeeded, by resumption", "At the server; ossl_tls_handshakes_total. “none” is full.",
			false, resumption.keys(), resumption.bars()},
		{"Duration of handshakes", "At the server, over five scrapes; ossl_tls_handshake_seconds.",
			false, durations.keys(), durations.lines()},
		{"Look-ups in the session cache", "ossl_tls_session_cache_gets_total. An error costs a full handshake.", false,
			gets.keys(), gets.bars()},
		{"Open connections", "At the server; ossl_tls_open_connections.", false, open.keys(), open.lines()},
	}
}

// quantiles returns the median and the 95th percentile of the server's handshakes, in milliseconds.
func quantiles(samples []sample) map[string][]float64 {
	const metric = "ossl_tls_handshake_seconds"
	all := map[string][]float64{}
	for i, s := range samples[1:] {
		from, to := samples[max(0, i-4)].buckets(metric, server), s.buckets(metric, server)
		all["median"] = append(all["median"], 1000*quantile(.5, from, to))
		all["95 %"] = append(all["95 %"], 1000*quantile(.95, from, to))
	}
	return all
}

func openConns(samples []sample) (values []float64) {
	for _, s := range samples[1:] {
		values = append(values, s.sum("ossl_tls_open_connections", server))
	}
	return values
}

// title names a failure, except for its alert.
func title(r reason) string { return r.role + ": " + r.class }

func detail(r reason) string {
	if r.alert == "" {
		return when(r)
	}
	return r.alert + ", " + when(r)
}

func when(r reason) string {
	if r.metric == afterHandshake {
		return "after the handshake"
	}
	return "in the handshake"
}

// reasonsInOrder returns the failures that the load made: the server's first, the most frequent
// first.
func (l *load) reasonsInOrder() []reason {
	wanted := l.wanted()
	return slices.SortedFunc(maps.Keys(wanted), func(a, b reason) int {
		return cmp.Or(-strings.Compare(a.metric, b.metric), -strings.Compare(a.role, b.role), cmp.Compare(wanted[b], wanted[a]),
			strings.Compare(title(a)+a.alert, title(b)+b.alert))
	})
}

// cause names the clients that a failure comes from.
func (l *load) cause(r reason) string {
	var names []string
	for _, k := range kinds {
		if slices.Contains(k.want, r) {
			names = append(names, k.name)
		}
	}
	return strings.Join(names, ", ")
}
