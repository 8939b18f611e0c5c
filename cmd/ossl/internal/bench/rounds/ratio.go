package rounds

import (
	"fmt"
	"math"
	"slices"
)

// A Ratio compares the figures of two things that were measured in the same rounds.
type Ratio struct {
	// Median is the median of the ratios within a round.
	Median float64 `json:"ratio"`
	// Low and High are its range: the median's confidence interval of at least 90%, between two of the
	// ratios, as benchstat has it. Fewer than five rounds don't suffice for that: then the range is
	// from the lowest ratio to the highest.
	Low  float64 `json:"ratio_low"`
	High float64 `json:"ratio_high"`

	Rounds int `json:"-"` // 0 if nothing was compared
}

// Compare returns the ratio of figures to others, of which those with the same index are of the same
// round.
func Compare(figures, to []float64) Ratio {
	var ratios []float64
	for i := range min(len(figures), len(to)) {
		if to[i] > 0 {
			ratios = append(ratios, figures[i]/to[i])
		}
	}
	if len(ratios) == 0 {
		return Ratio{}
	}
	slices.Sort(ratios)
	n := len(ratios)
	out := outside(n)
	return Ratio{Median(ratios), ratios[out], ratios[n-1-out], n}
}

const confidence = 0.9

// outside returns how many of n ratios are below the range, and as many are above it. Each ratio is
// below the true median with a probability of one half. So the median is below the range if at most
// that many of n fair coins fall on heads, and above it if at most that many fall on tails.
func outside(n int) (k int) {
	if n > 1000 { // the probabilities are too small for a float64: the normal distribution is close
		return int(float64(n)/2 - 0.8225*math.Sqrt(float64(n)))
	}
	few := math.Exp2(-float64(n)) // the probability that k coins fall on heads
	for fewer := few; ; k++ {
		few *= float64(n-k) / float64(k+1)
		if fewer += few; 2*fewer > 1-confidence {
			return k
		}
	}
}

// String returns the ratio with its range, or "" if nothing was compared.
func (r Ratio) String() string {
	switch r.Rounds {
	case 0:
		return ""
	case 1:
		return short(r.Median) + " (one round)"
	}
	return fmt.Sprintf("%s (%s-%s)", short(r.Median), short(r.Low), short(r.High))
}

// short formats a ratio with three digits or more.
func short(ratio float64) string {
	if ratio >= 9.995 {
		return fmt.Sprintf("%.1f", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

// Legend defines ratios and their ranges, after so many rounds.
func Legend(rounds int) string {
	switch {
	case rounds == 1:
		return "A ratio is that of one round."
	case 2*math.Exp2(-float64(rounds)) > 1-confidence:
		return "A ratio is the median of the rounds' ratios; its range is that of all rounds."
	}
	return "A ratio is the median of the rounds' ratios; its range holds with 90% confidence."
}

// Median returns the median, which of an even number of values is between the two in the middle, or
// 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
