//go:build unix

package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// CheckOwner returns an error if another user than the process's and root could change a file or folder.
func CheckOwner(info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() && s.Uid != 0 {
		return errors.New("belongs to another user: use chown root")
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others than its owner can write it, its mode is %04o: use chmod go-w", mode)
	}
	return nil
}
