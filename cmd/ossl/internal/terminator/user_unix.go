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

// lookUser returns a user's numbers.
func lookUser(name string) (u *user.User, uid, gid int, err error) {
	if u, err = user.Lookup(name); err != nil {
		return nil, 0, 0, err
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return nil, 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return u, uid, gid, err
}

// giveTo makes a user the owner of a folder that was just made.
func giveTo(name, folder string) error {
	_, uid, gid, err := lookUser(name)
	if err != nil {
		return err
	}
	return os.Lchown(folder, uid, gid)
}

// become gives up root's privileges and takes a user's, with all threads: package syscall makes the C
// library do so. It does nothing if the process runs as that user, such as after a restart.
func become(name string) error {
	u, uid, gid, err := lookUser(name)
	if err != nil {
		return err
	}
	switch {
	case uid == 0:
		return fmt.Errorf("user: %s is root; name an unprivileged user", name)
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
