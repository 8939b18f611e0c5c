package terminator_test

import (
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// goal is the size of the heap at which the next collection finishes.
func goal() uint64 {
	runtime.GC()
	runtime.GC() // frees objects that the first one has finalized
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestBallast: the heap may grow by the ballast's size more before it is collected, except where the
// environment has a limit.
func TestBallast(t *testing.T) {
	const size = 16 << 20
	t.Cleanup(terminator.DropBallast)
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "100")
			terminator.DropBallast()
			before := goal()
			terminator.HoldBallast()
			if now := goal(); now > before+size {
				t.Errorf("the goal is %d, and was %d", now, before)
			}
		})
	}
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv(name, "")
	}
	before := goal()
	terminator.HoldBallast()
	terminator.HoldBallast() // once more changes nothing
	now := goal()
	if grown := int64(now - before); grown < size || grown > 3*size {
		t.Errorf("the goal is %d, and was %d", now, before)
	}
}
