package confgen

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// nobody is the user of servers that root starts.
const nobody = 65534

// confine makes a program run in a process group of its own, and without root's rights. It runs as
// nobody, or in a user namespace if nobody can't reach the program or its folder. In the namespace
// it can read root's files, but has no other right of root.
func confine(cmd *exec.Cmd, s Server) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return nil
	}
	if readable(s.Program) && readable(cmd.Dir) {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		return nil
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: 0, Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: 0, Size: 1}}
	return nil
}

// readable reports whether everyone can reach the folder in which a file is.
func readable(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// own gives a folder to the server's user.
func own(s Server, dir string) error {
	if os.Getuid() != 0 || !readable(s.Program) || !readable(dir) {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
}

// kill sends SIGTERM to a program's process group, or SIGKILL if hard is set.
func kill(cmd *exec.Cmd, hard bool) {
	if cmd.Process == nil {
		return
	}
	signal := syscall.SIGTERM
	if hard {
		signal = syscall.SIGKILL
	}
	syscall.Kill(-cmd.Process.Pid, signal)
}
