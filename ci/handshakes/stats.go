//go:build linux

package main

import "github.com/ossl-go/ossl/ci/internal/load"

// A sample is the result of one turn.
type sample struct {
	micros    float64 // of processor time, for a connection
	perSecond float64 // connections
}

// micros is a sample's processor time.
func micros(s sample) float64 { return s.micros }

// results holds the samples by turn and round.
type results struct{ samples load.Samples[turn, sample] }

func newResults() *results { return &results{samples: load.Samples[turn, sample]{}} }

// ratio returns the ratios of processor time to another stack's in the same row and round, and
// whether there are any.
func (r *results) ratio(t turn, to string) (load.Spread, bool) {
	return r.samples.Ratio(t, turn{t.row, to}, micros)
}
