//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// group gives a command a process group of its own, which is killed as a whole.
func group(cmd *exec.Cmd) (*syscall.SysProcAttr, func() error) {
	return &syscall.SysProcAttr{Setpgid: true}, func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
