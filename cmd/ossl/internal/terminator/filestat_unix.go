//go:build unix

package terminator

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A fileState identifies a file and its contents: every change of a file changes the time of its
// last change of status, which nobody can set.
type fileState struct {
	device, number   uint64
	bytes            int64
	modified, status unix.Timespec
}

// stateAt returns the state of the file that a name in an open folder leads to, wherever that is.
func stateAt(folder uintptr, name string) (state fileState, ok bool) {
	var s unix.Stat_t
	for {
		switch err := unix.Fstatat(int(folder), name, &s, 0); err {
		case nil:
			return stateOf(&s), true
		case unix.EINTR:
		default:
			return fileState{}, false
		}
	}
}

// stateOfFile returns the state of an open file.
func stateOfFile(f *os.File) (state fileState, ok bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return fileState{}, false
	}
	var s unix.Stat_t
	if controlErr := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &s) }); controlErr != nil || err != nil {
		return fileState{}, false
	}
	return stateOf(&s), true
}

func stateOf(s *unix.Stat_t) fileState {
	return fileState{uint64(s.Dev), uint64(s.Ino), s.Size, s.Mtim, s.Ctim}
}

// etag returns the entity tag of the file: RFC 9110, section 8.8.3.
func (s *fileState) etag() string {
	return fmt.Sprintf(`"%x-%x-%x"`, s.bytes, s.modified.Nano(), s.status.Nano())
}

// size returns the size of the file.
func (s *fileState) size() int64 { return s.bytes }

// changed returns the time of the last change.
func (s *fileState) changed() time.Time { return time.Unix(s.status.Unix()) }
