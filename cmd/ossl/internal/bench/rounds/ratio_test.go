package rounds

import "testing"

// TestOutsideOfMany: the range of very many ratios is computed too, and continues the ranges of fewer
// ratios.
func TestOutsideOfMany(t *testing.T) {
	if few, many := outside(1000), outside(1001); many < few-1 || many > few+2 || outside(100_000) < 49_000 {
		t.Errorf("%d of 1000, %d of 1001, %d of 100000", few, many, outside(100_000))
	}
}
