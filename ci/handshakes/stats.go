//go:build linux

package main

import (
	"maps"

	"github.com/ossl-go/ossl/ci/internal/load"
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
	return load.Quantile(all, 0.5)
}

// ratio returns the ratios of processor time to another stack's in the same row and round, and
// whether there are any.
func (r *results) ratio(t turn, to string) (load.Spread, bool) {
	var all []float64
	others := r.samples[turn{t.row, to}]
	for round, s := range r.samples[t] {
		if o, ok := others[round]; ok && o.micros > 0 {
			all = append(all, s.micros/o.micros)
		}
	}
	if len(all) == 0 {
		return load.Spread{}, false
	}
	return load.SpreadOf(all), true
}
