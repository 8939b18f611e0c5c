//go:build unix

package terminator

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// checkUser returns an error if this system can't change the user of a process.
func checkUser(string) error { return nil }

// become gives up root's privileges for those of a user, with all threads: package syscall has the C
// library do so. It does nothing if the process runs as that user, such as after a restart.
func become(name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	switch {
	case uid == 0:
		return fmt.Errorf("user: %s is root, whose privileges are to be given up", name)
	case os.Getuid() == uid && os.Geteuid() == uid:
		return nil
	case os.Geteuid() != 0:
		return fmt.Errorf("user: only root can become %s", name)
	}
	texts, err := u.GroupIds()
	if err != nil {
		return err
	}
	var groups []int
	for _, text := range texts {
		group, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		groups = append(groups, group)
	}
	if err := syscall.Setgroups(groups); err != nil {
		return os.NewSyscallError("setgroups", err)
	}
	if err := syscall.Setgid(gid); err != nil {
		return os.NewSyscallError("setgid", err)
	}
	if err := syscall.Setuid(uid); err != nil {
		return os.NewSyscallError("setuid", err)
	}
	if syscall.Setuid(0) == nil || os.Getuid() != uid || os.Geteuid() != uid || os.Getgid() != gid || os.Getegid() != gid {
		return errors.New("user: the system has not taken root's privileges away")
	}
	return nil
}
