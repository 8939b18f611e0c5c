package audit

import (
	"math"
	"math/rand/v2"
	"slices"
)

// resamples is the number of bootstrap samples. Their generator begins with a fixed seed, so the
// same times give the same interval.
const resamples = 2000

// median returns the median; NaN if there are no values.
func median(values []float64) float64 { return sortedMedian(slices.Clone(values)) }

// sortedMedian is median that sorts its argument.
func sortedMedian(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}

// interval returns the median and its 95 % confidence interval by the bootstrap: the percentiles of
// the medians of samples drawn with replacement. With fewer than minRounds values the smallest and
// the largest don't enclose the true median in 95 % of cases, so there is no interval.
func interval(values []float64) *Interval {
	if len(values) < minRounds {
		return nil
	}
	random := rand.New(rand.NewPCG(1, 2))
	medians := make([]float64, resamples)
	sample := make([]float64, len(values))
	for i := range medians {
		for j := range sample {
			sample[j] = values[random.IntN(len(values))]
		}
		medians[i] = sortedMedian(sample)
	}
	slices.Sort(medians)
	at := func(p float64) float64 { return medians[int(p*float64(resamples-1))] }
	return &Interval{Median: median(values), Low: at(.025), High: at(.975)}
}

// minRounds is the least number of values of which the range encloses the true median with a
// probability of 95 %: 1 - 2*0.5^6 is 0.97, with 5 values it is 0.94.
const minRounds = 6

// half returns half the width of an interval.
func (i *Interval) half() float64 { return (i.High - i.Low) / 2 }

// measurable reports whether an interval shows a positive effect that is larger than its noise.
func (i *Interval) measurable() bool { return i != nil && i.Low > 0 && i.half() < i.Median }

// scaled returns the interval times f.
func (i *Interval) scaled(f float64) *Interval {
	if i == nil {
		return nil
	}
	return &Interval{i.Median * f, i.Low * f, i.High * f}
}
