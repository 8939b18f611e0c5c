//go:build linux

package main

import (
	"maps"
	"slices"
)

// A sample is the result of one turn, for each connection except perSecond.
type sample struct {
	micros                       float64 // of processor time
	voluntary, involuntary, runs float64
	perSecond                    float64 // connections
}

// results holds the samples by turn and round.
type results struct {
	samples  map[turn]map[int]sample
	syscalls map[turn]float64 // a connection
}

func newResults() *results {
	return &results{samples: map[turn]map[int]sample{}, syscalls: map[turn]float64{}}
}

func (r *results) add(t turn, round int, s sample) {
	if r.samples[t] == nil {
		r.samples[t] = map[int]sample{}
	}
	r.samples[t][round] = s
}

// median returns the median of a field over the rounds.
func (r *results) median(t turn, field func(sample) float64) float64 {
	var all []float64
	for s := range maps.Values(r.samples[t]) {
		all = append(all, field(s))
	}
	return quantile(all, 0.5)
}

// A spread is a median with its quartiles.
type spread struct{ low, median, high float64 }

// ratio returns the ratios of processor time to another stack's in the same row and round, and
// whether there are any.
func (r *results) ratio(t turn, to string) (spread, bool) {
	var all []float64
	others := r.samples[turn{t.row, to}]
	for round, s := range r.samples[t] {
		if o, ok := others[round]; ok && o.micros > 0 {
			all = append(all, s.micros/o.micros)
		}
	}
	if len(all) == 0 {
		return spread{}, false
	}
	return spread{quantile(all, 0.25), quantile(all, 0.5), quantile(all, 0.75)}, true
}

// quantile interpolates between the neighbours in order. values is not empty.
func quantile(values []float64, q float64) float64 {
	values = slices.Sorted(slices.Values(values))
	at := q * float64(len(values)-1)
	i := int(at)
	if i+1 == len(values) {
		return values[i]
	}
	return values[i] + (at-float64(i))*(values[i+1]-values[i])
}
