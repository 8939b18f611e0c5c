package bench

import (
	"fmt"
	"syscall"
)

// raiseFileLimit makes room for n open files, above the hard limit if this process has permission.
func raiseFileLimit(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Cur >= n {
		return nil
	}
	limit.Cur, limit.Max = n, max(limit.Max, n)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("bench: %d open files are needed (ulimit -n): %w", n, err)
	}
	return nil
}
