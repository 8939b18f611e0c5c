package doctor

import (
	"strings"
	"testing"
)

// TestAdvise: advice follows from the whole interval, and an interval that allows both gives none.
func TestAdvise(t *testing.T) {
	for _, c := range []struct {
		low, median, high float64
		state             State
		do                string
	}{
		{1.2, 2, 3.1, OK, "put AES-GCM first: in full records it is 2.0 times as fast as ChaCha20-Poly1305 here (1.2 to 3.1)"},
		{0.25, 0.5, 0.8, Advice, "put ChaCha20-Poly1305 first: in full records it is 2.0 times as fast as AES-GCM here (1.2 to 4.0)"},
		{0.95, 1, 1.05, OK, "nothing: in full records"},
		{0.6, 2, 3, Unknown, "; the load is 6.6 on 2 processors"},
		{0.4, 0.5, 1.2, Unknown, "measure again"},
	} {
		item := Item{State: OK, Ratios: []Ratio{{"OpenSSL", c.median, c.low, c.high}}}
		if item.advise("; the load is 6.6 on 2 processors"); item.State != c.state || !strings.Contains(item.Do, c.do) {
			t.Errorf("%v to %v: %s, %s", c.low, c.high, item.State, item.Do)
		}
	}
	var aes, chacha []float64
	for i := range speedRounds {
		aes, chacha = append(aes, 10), append(chacha, float64(11+i))
	}
	if r := ratioOf("Go", aes, chacha); r.Low != 1.4 || r.Median != 1.8 || r.High != 2.2 {
		t.Errorf("%+v", r)
	}
}
