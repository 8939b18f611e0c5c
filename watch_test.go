package ossl_test

import (
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestWatchClockSetBack: a Watch is due when the clock has been set back, not an hour later.
func TestWatchClockSetBack(t *testing.T) {
	w := ossl.NewWatch(func() error { return nil })
	start := time.Now()
	for _, step := range []struct {
		wall, monotonic time.Duration
		due             bool
	}{{0, 0, true}, {0, 0, false}, {-time.Hour, 0, false}, {-time.Hour, time.Minute, true}, {time.Hour, time.Minute, false}} {
		ossl.SetWatchClock(w, func() time.Time { return tlstest.MoveClocks(start, step.wall, step.monotonic) })
		if due := w.Due(time.Minute); due != step.due {
			t.Errorf("%+v: due is %v", step, due)
		}
	}
	if w.Due(-1) {
		t.Error("due with a negative interval")
	}
}
