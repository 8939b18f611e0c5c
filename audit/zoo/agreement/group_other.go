//go:build !unix

package main

import (
	"os/exec"
	"syscall"
)

func group(cmd *exec.Cmd) (*syscall.SysProcAttr, func() error) {
	return nil, func() error { return cmd.Process.Kill() }
}
