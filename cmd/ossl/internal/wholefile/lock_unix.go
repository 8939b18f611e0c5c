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

// TryLock locks a file, which it makes if there is none, until unlock is called or the process
// exits. It reports whether it has locked the file: it can't if this process or another one has
// locked it already. Locks of other hosts count too if the file system has them, as NFS does.
func TryLock(name string) (unlock func(), locked bool, err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) // NFS needs a file that is open for writing
	if err != nil {
		return nil, false, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		return func() { _ = f.Close() }, true, nil
	}
	_ = f.Close()
	if err == unix.EWOULDBLOCK {
		return nil, false, nil
	}
	return nil, false, &os.PathError{Op: "flock", Path: name, Err: err}
}
