package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// hasThreadTime returns an error if threadTime can't be called.
func hasThreadTime() error { return nil }

// threadTime returns the processor time that the calling thread has used.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // Linux has had this clock since 2.6.12
	}
	return time.Duration(t.Nano())
}
