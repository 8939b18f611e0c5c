package bench

import "time"

// A Measure does one operation at a time, over loopback TCP.
type Measure interface {
	// Prepare does what is not to be timed: it cleans up after the operations
	// done, makes ready for the next, and returns how many those may be
	// before Prepare must be called again.
	Prepare() (int, error)

	// Do does one operation and returns when both ends are done with it.
	Do() error

	// Close closes both ends of all connections and returns how many
	// operations there were. That can be more than the calls of Do: the
	// sender of Bulk does not wait to be asked.
	Close() (ops int, err error)
}

// always is what Prepare returns where one call is enough.
const always = int(^uint(0) >> 1)

// TimeFor does operations of m until they took d, and returns how many they
// were and what they took, without the time of Prepare.
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
