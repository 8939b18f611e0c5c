//go:build unix

package gofarm

import (
	"fmt"
	"os"
	"path/filepath"
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

// Exec runs the farm's go command in place of this process. ossl is the file of the command ossl.
func (p *Plan) Exec(ossl string, args []string) error {
	command := filepath.Join(p.Root, "bin", "go")
	for _, e := range p.Environment(ossl) {
		// If a variable were there twice, the first would count, which is the user's.
		if err := os.Setenv(e[0], e[1]); err != nil {
			return err
		}
	}
	err := syscall.Exec(command, append([]string{"go"}, args...), os.Environ())
	return &os.PathError{Op: "exec", Path: command, Err: err}
}
