package load_test

import (
	"math"
	"testing"

	"github.com/ossl-go/ossl/ci/internal/load"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestQuantile(t *testing.T) {
	for _, test := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{7}, 0.25, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{4, 1, 3, 2}, 0.25, 1.75},
		{[]float64{4, 1, 3, 2}, 0.75, 3.25},
		{[]float64{4, 1, 3, 2}, 1, 4},
	} {
		if got := load.Quantile(test.values, test.q); !near(got, test.want) {
			t.Errorf("Quantile(%v, %v) = %v, want %v", test.values, test.q, got, test.want)
		}
	}
}
