package promossl_test

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A sample is a scrape.
type sample struct {
	at       time.Duration // since the start of the load
	families map[string][]*dto.Metric
}

// take scrapes.
func take(t *testing.T, g prometheus.Gatherer, at time.Duration) sample {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	s := sample{at, map[string][]*dto.Metric{}}
	for _, f := range families {
		s.families[f.GetName()] = f.GetMetric()
	}
	return s
}

// A filter has the values that labels must have.
type filter map[string]string

func (f filter) matches(m *dto.Metric) bool {
	for name, value := range f {
		if label(m, name) != value {
			return false
		}
	}
	return true
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// by returns the sums of a metric's values, by the values of a label, or of all if it is "".
func (s sample) by(metric, name string, f filter) map[string]float64 {
	sums := map[string]float64{}
	for _, m := range s.families[metric] {
		if f.matches(m) {
			sums[label(m, name)] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sums
}

func (s sample) sum(metric string, f filter) float64 { return s.by(metric, "", f)[""] }

// reasons returns all failures.
func (s sample) reasons() map[reason]int {
	all := map[reason]int{}
	for _, metric := range []string{duringHandshake, afterHandshake} {
		for _, m := range s.families[metric] {
			all[reason{metric, label(m, "role"), label(m, "class"), label(m, "alert")}] += int(m.GetCounter().GetValue())
		}
	}
	return all
}

// buckets returns the cumulative counts of a histogram, by their bounds.
func (s sample) buckets(metric string, f filter) map[float64]float64 {
	sums := map[float64]float64{}
	for _, m := range s.families[metric] {
		if !f.matches(m) {
			continue
		}
		for _, b := range m.GetHistogram().GetBucket() {
			sums[b.GetUpperBound()] += float64(b.GetCumulativeCount())
		}
		sums[math.Inf(1)] += float64(m.GetHistogram().GetSampleCount())
	}
	return sums
}

// quantile returns a quantile of the observations between two samples, as Prometheus'
// histogram_quantile does: interpolated within its bucket. It is 0 if there are none.
func quantile(q float64, from, to map[float64]float64) float64 {
	total := to[math.Inf(1)] - from[math.Inf(1)]
	lower, below := 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(to)) {
		n := to[bound] - from[bound]
		if n >= q*total && n > below {
			if math.IsInf(bound, 1) {
				return lower
			}
			return lower + (bound-lower)*(q*total-below)/(n-below)
		}
		lower, below = bound, n
	}
	return 0
}

// rates returns a metric's increase per second between neighbours of the samples, by the values of
// a label. The first value is of the second sample.
func rates(samples []sample, metric, name string, f filter) map[string][]float64 {
	all := map[string][]float64{}
	for value := range samples[len(samples)-1].by(metric, name, f) {
		for i, s := range samples[1:] {
			before := samples[i]
			increase := s.by(metric, name, f)[value] - before.by(metric, name, f)[value]
			all[value] = append(all[value], increase/(s.at-before.at).Seconds())
		}
	}
	return all
}

// inOrder returns the series in the order of their sums, the largest first.
func inOrder(series map[string][]float64) []string {
	sum := func(values []float64) (s float64) {
		for _, v := range values {
			s += v
		}
		return s
	}
	return slices.SortedFunc(maps.Keys(series), func(a, b string) int {
		return cmp.Or(cmp.Compare(sum(series[b]), sum(series[a])), cmp.Compare(a, b))
	})
}

func TestQuantile(t *testing.T) {
	inf := math.Inf(1)
	from := map[float64]float64{1: 1, 2: 1, inf: 1}
	to := map[float64]float64{1: 1, 2: 11, inf: 21}
	for _, c := range []struct {
		q, want float64
		from    map[float64]float64
	}{{0.25, 1.5, from}, {0.5, 2, from}, {0.9, 2, from}, {0.5, 0, to}} {
		if got := quantile(c.q, c.from, to); got != c.want {
			t.Errorf("the quantile %v is %v, want %v", c.q, got, c.want)
		}
	}
}
