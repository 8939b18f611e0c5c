// Package load has the common parts of ci/handshakes and ci/serveload, which start servers, load
// them by turns, and compare the turns of a round.
package load

import "slices"

// A Spread is a median with its quartiles.
type Spread struct{ Low, Median, High float64 }

// SpreadOf returns the spread of values, of which there is at least one.
func SpreadOf(values []float64) Spread {
	return Spread{Quantile(values, 0.25), Quantile(values, 0.5), Quantile(values, 0.75)}
}

// Quantile interpolates between the neighbours in order. values is not empty.
func Quantile(values []float64, q float64) float64 {
	values = slices.Sorted(slices.Values(values))
	at := q * float64(len(values)-1)
	i := int(at)
	if i+1 == len(values) {
		return values[i]
	}
	return values[i] + (at-float64(i))*(values[i+1]-values[i])
}
