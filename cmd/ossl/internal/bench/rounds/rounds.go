// Package rounds measures things that are compared with one another, and compares them. In each round
// each of them has a turn, so that a machine that changes its speed changes it for all.
package rounds

import "math/rand/v2"

// Samples has the samples of each turn, one for each round.
type Samples[Turn comparable, Sample any] map[Turn][]Sample

// Take takes every turn once in each of n rounds. The turns of a group are compared with one
// another, so they follow each other. The groups of a round are in random order, and so are the
// turns of a group; the same seed gives the same order.
func Take[Turn comparable, Sample any](n int, seed uint64, groups [][]Turn, take func(round int, t Turn) (Sample, error),
) (Samples[Turn, Sample], error) {
	all := Samples[Turn, Sample]{}
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range n {
		for _, i := range random.Perm(len(groups)) {
			for _, j := range random.Perm(len(groups[i])) {
				turn := groups[i][j]
				sample, err := take(round, turn)
				if err != nil {
					return nil, err
				}
				all[turn] = append(all[turn], sample)
			}
		}
	}
	return all, nil
}

// Figures returns a figure of each sample of a turn.
func (all Samples[Turn, Sample]) Figures(t Turn, figure func(Sample) float64) []float64 {
	var figures []float64
	for _, s := range all[t] {
		figures = append(figures, figure(s))
	}
	return figures
}

// Median returns the median of a figure of a turn.
func (all Samples[Turn, Sample]) Median(t Turn, figure func(Sample) float64) float64 {
	return Median(all.Figures(t, figure))
}

// Compare returns the ratio of a figure of t to the same figure of another turn.
func (all Samples[Turn, Sample]) Compare(t, to Turn, figure func(Sample) float64) Ratio {
	return Compare(all.Figures(t, figure), all.Figures(to, figure))
}
