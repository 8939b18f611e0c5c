//go:build !linux

package confgen

import "os/exec"

func confine(*exec.Cmd, Server) error { return errSystem }

func own(Server, string) error { return nil }

func kill(cmd *exec.Cmd, hard bool) {
	if cmd.Process != nil {
		cmd.Process.Kill()
	}
}
