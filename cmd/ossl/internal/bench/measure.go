package bench

import "time"

// A Measure does one operation at a time, over loopback TCP.
type Measure interface {
	// Prepare does the work that is not timed: it cleans up after the previous operations, prepares
	// the next ones, and returns the number of calls of Do that are allowed before the next
	// Prepare.
	Prepare() (int, error)

	// Do does one operation and returns when it is complete on both sides.
	Do() error

	// Close closes all connections on both sides and returns the number of operations. That can be
	// more than the calls of Do: the sender of Bulk doesn't wait for them.
	Close() (ops int, err error)
}

// always is Prepare's result if one call is enough.
const always = int(^uint(0) >> 1)

// TimeFor does operations of m until they took d, and returns their number and time, without the
// time of Prepare.
func TimeFor(m Measure, d time.Duration) (ops int, elapsed time.Duration, err error) {
	for elapsed < d {
		ready, err := m.Prepare()
		if err != nil {
			return ops, elapsed, err
		}
		before := elapsed
		for start := time.Now(); ready > 0 && elapsed < d; ready-- {
			if err := m.Do(); err != nil {
				return ops, elapsed, err
			}
			ops++
			elapsed = before + time.Since(start)
		}
	}
	return ops, elapsed, nil
}
