package load

import "maps"

// Samples holds what turns have measured: a sample for each turn and round.
type Samples[Turn comparable, Sample any] map[Turn]map[int]Sample

// Add adds the sample of a turn in a round.
func (all Samples[Turn, Sample]) Add(t Turn, round int, s Sample) {
	if all[t] == nil {
		all[t] = map[int]Sample{}
	}
	all[t][round] = s
}

// Median returns the median of a figure over the rounds of a turn, of which there is at least one.
func (all Samples[Turn, Sample]) Median(t Turn, figure func(Sample) float64) float64 {
	var values []float64
	for s := range maps.Values(all[t]) {
		values = append(values, figure(s))
	}
	return Quantile(values, 0.5)
}

// Ratio returns the ratios of a figure of t to that of another turn in the same round, and whether
// there are any.
func (all Samples[Turn, Sample]) Ratio(t, to Turn, figure func(Sample) float64) (Spread, bool) {
	var values []float64
	for round, s := range all[t] {
		if other, ok := all[to][round]; ok && figure(other) > 0 {
			values = append(values, figure(s)/figure(other))
		}
	}
	if len(values) == 0 {
		return Spread{}, false
	}
	return SpreadOf(values), true
}
