//go:build unix

package gofarm

import (
	"fmt"
	"os"
	"syscall"
)

// isOurs returns an error if another user than this one could have put a folder there.
func isOurs(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || s.Uid != uint32(os.Geteuid()) || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is another user's, or others can write to it", dir)
	}
	return nil
}
