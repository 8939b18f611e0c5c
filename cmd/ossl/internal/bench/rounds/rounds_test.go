package rounds_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

// TestCompare checks that ratios don't show the speed of the machine, which doubles in each round here.
func TestCompare(t *testing.T) {
	for _, test := range []struct {
		ratios []float64
		want   rounds.Ratio
		text   string
	}{
		{nil, rounds.Ratio{}, ""},
		{[]float64{2}, rounds.Ratio{Median: 2, Low: 2, High: 2, Rounds: 1}, "2.00 (one round)"},
		{[]float64{20}, rounds.Ratio{Median: 20, Low: 20, High: 20, Rounds: 1}, "20.0 (one round)"},
		{[]float64{2, 1}, rounds.Ratio{Median: 1.5, Low: 1, High: 2, Rounds: 2}, "1.50 (1.00-2.00)"},
		{[]float64{1.5, 1, 2, 1.25}, rounds.Ratio{Median: 1.375, Low: 1, High: 2, Rounds: 4}, "1.38 (1.00-2.00)"},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 80}, rounds.Ratio{Median: 4.5, Low: 2, High: 7, Rounds: 8}, "4.50 (2.00-7.00)"},
		{[]float64{11, 1, 10, 2, 9, 3, 8, 4, 7, 5, 6}, rounds.Ratio{Median: 6, Low: 3, High: 9, Rounds: 11}, "6.00 (3.00-9.00)"},
	} {
		var figures, to []float64
		speed := 1.0
		for _, ratio := range test.ratios {
			figures, to = append(figures, ratio*speed), append(to, speed)
			speed *= 2
		}
		to = append(to, 1) // a round that only one has
		got := rounds.Compare(figures, to)
		if got != test.want || got.String() != test.text {
			t.Errorf("%v: %+v, %q; want %+v, %q", test.ratios, got, got, test.want, test.text)
		}
	}
	if got := rounds.Compare([]float64{1, 4}, []float64{0, 2}); got.Median != 2 || got.Rounds != 1 {
		t.Errorf("with a figure of 0: %+v", got)
	}
}

// TestConfidence checks that the range has the true median, 1, in nine of ten measurements or more,
// and that it wouldn't if it were one ratio narrower at each end.
func TestConfidence(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{5, 7, 11, 15, 30} {
		const measurements = 10_000
		within, narrower := 0, 0
		for range measurements {
			var ratios, ones []float64
			for range n {
				ratios, ones = append(ratios, 0.5+random.Float64()), append(ones, 1)
			}
			r := rounds.Compare(ratios, ones)
			slices.Sort(ratios)
			if r.Low <= 1 && 1 <= r.High {
				within++
			}
			if i := slices.Index(ratios, r.Low) + 1; ratios[i] <= 1 && 1 <= ratios[n-1-i] {
				narrower++
			}
		}
		if within < measurements*89/100 || narrower > measurements*91/100 {
			t.Errorf("%d rounds: %d of %d, and %d if narrower", n, within, measurements, narrower)
		}
	}
}

func TestLegend(t *testing.T) {
	for n, want := range map[int]string{1: "one round", 4: "all rounds", 5: "90% confidence", 11: "90% confidence"} {
		if got := rounds.Legend(n); !strings.Contains(got, want) {
			t.Errorf("%d rounds: %q", n, got)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := rounds.Median(test.values); got != test.want {
			t.Errorf("the median of %v is %v", test.values, got)
		}
	}
}

// TestTake checks that a round has each turn once, that the turns of a group follow each other, and
// that neither groups nor turns have a fixed order.
func TestTake(t *testing.T) {
	groups := [][]string{{"a1", "a2"}, {"b1", "b2", "b3"}, {"c1"}}
	const n = 200
	order := func(seed uint64) (taken []string) {
		samples, err := rounds.Take(n, seed, groups, func(round int, turn string) (float64, error) {
			taken = append(taken, turn)
			return float64(round), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, turn := range slices.Concat(groups...) {
			got := samples.Figures(turn, func(f float64) float64 { return f })
			if len(got) != n || got[0] != 0 || got[n-1] != n-1 || !slices.IsSorted(got) {
				t.Errorf("%s has the samples %v", turn, got)
			}
		}
		return taken
	}
	taken, first := order(7), map[string]bool{}
	for round := range slices.Chunk(taken, 6) {
		first[round[0]] = true
		var letters string
		for _, turn := range round {
			letters += turn[:1]
		}
		if letters = strings.NewReplacer("aa", "a", "bbb", "b").Replace(letters); len(letters) != 3 {
			t.Errorf("groups are torn apart: %v", round)
		}
	}
	if len(first) != 6 {
		t.Errorf("rounds begin with %d of the 6 turns", len(first))
	}
	if !slices.Equal(order(7), taken) || slices.Equal(order(8), taken) {
		t.Error("the order is not that of the seed")
	}
	failed := errors.New("failed")
	_, err := rounds.Take(1, 1, groups, func(int, string) (int, error) { return 0, failed })
	if !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
}

func TestTables(t *testing.T) {
	var b strings.Builder
	head, rows := []string{"row", "time", "ratio"}, [][]string{{"a", "1", "2"}, {"b", "3", ""}}
	rounds.WriteMarkdown(&b, head, nil)
	rounds.WriteMarkdown(&b, head, rows)
	rounds.WriteTSV(&b, head, rows)
	want := "\n| row | time | ratio |\n|---|--:|--:|\n| a | 1 | 2 |\n| b | 3 |  |\nrow\ttime\tratio\na\t1\t2\nb\t3\t\n"
	if b.String() != want {
		t.Errorf("the tables are\n%s", fmt.Sprint(b.String()))
	}
}
