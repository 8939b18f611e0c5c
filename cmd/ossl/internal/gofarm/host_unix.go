//go:build unix

package gofarm

import (
	"os"
	"path/filepath"
	"syscall"
)

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
