//go:build unix

package ossl

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const nonblocking = syscall.O_NONBLOCK // to open a file

// exposure describes how others than the process's user come by an open file's contents, or returns "".
func exposure(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode(); {
	case ok && int(s.Uid) != os.Geteuid():
		return fmt.Sprintf("the file belongs to another user, %d", s.Uid)
	case mode.Perm()&0o077 != 0:
		return fmt.Sprintf("others have access to the file: its mode is %04o", mode.Perm())
	}
	return ""
}
