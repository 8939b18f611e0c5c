//go:build unix

package wholefile

import (
	"os"

	"golang.org/x/sys/unix"
)

// Lock has other callers of Lock for the same folder wait, in other processes too, until unlock is
// called. It locks nothing if the folder can't be opened, or if its file system has no locks.
func Lock(folder string) (unlock func()) {
	f, err := os.Open(folder)
	if err != nil {
		return func() {}
	}
	for unix.Flock(int(f.Fd()), unix.LOCK_EX) == unix.EINTR {
	}
	return func() { _ = f.Close() } // which unlocks it
}
