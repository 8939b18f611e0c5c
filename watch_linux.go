package ossl

import (
	"io/fs"
	"syscall"
	"time"
)

// statusTime returns the time of a file's last change of status, which nobody can set: a copy that keeps
// the time of the last modification changes it.
func statusTime(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix())
	}
	return time.Time{}
}
