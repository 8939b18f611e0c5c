//go:build !linux

package confgen

import (
	"errors"
	"os/exec"
)

var errSystem = errors.New("starting servers for a trial works on Linux only")

func confine(*exec.Cmd, Server) error { return errSystem }

func own(Server, string) error { return nil }

func kill(cmd *exec.Cmd, hard bool) {
	if cmd.Process != nil {
		cmd.Process.Kill()
	}
}
