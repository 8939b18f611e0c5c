package drivertest

import (
	"os"
	"os/exec"
	"syscall"
)

// confine makes a command that root starts run as the user nobody in a user namespace of its own:
// PostgreSQL refuses to run as root, and servers that were unpacked in root's home are closed to
// other users.
func confine(cmd *exec.Cmd) {
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	mapping := []syscall.SysProcIDMap{{ContainerID: nobody, HostID: 0, Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: mapping, GidMappings: mapping}
}
