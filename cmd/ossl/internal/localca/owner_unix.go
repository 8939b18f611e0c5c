//go:build unix

package localca

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// checkFile returns an error if others than the caller and root could have made a file, or could put
// another one in its place: as ssh does for its keys. keep is the file's mode that others may have.
func checkFile(file string, keep fs.FileMode) error {
	path, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := checkOwner(path, info); err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077&^keep != 0 {
		if keep == 0 {
			return fmt.Errorf("%s has the mode %04o: others must not have access to it (chmod 600)", file, mode)
		}
		return fmt.Errorf("%s has the mode %04o: others must not be able to change it (chmod go-w)", file, mode)
	}
	return checkFolders(filepath.Dir(path), false)
}

// checkFolders returns an error if others could rename files in an absolute folder, or the folder
// itself. In a folder with the sticky bit, such as /tmp, they can rename only files and folders of
// their own; the folder must not be such a one unless shared is true.
func checkFolders(folder string, shared bool) error {
	for ; ; folder, shared = filepath.Dir(folder), true {
		info, err := os.Lstat(folder)
		if err != nil {
			return err
		}
		if err := checkOwner(folder, info); err != nil {
			return err
		}
		if sticky := info.Mode()&fs.ModeSticky != 0; writable(info) && !(sticky && shared) {
			return fmt.Errorf("%s has the mode %04o: others could put another key there (chmod go-w, or give another folder)",
				folder, info.Mode().Perm())
		}
		if folder == filepath.Dir(folder) {
			return nil
		}
	}
}

// checkNew is checkFolders for a folder that need not exist yet, or is empty.
func checkNew(folder string) error {
	existing := folder
	path, err := filepath.EvalSymlinks(existing)
	for errors.Is(err, fs.ErrNotExist) && existing != filepath.Dir(existing) {
		existing = filepath.Dir(existing)
		path, err = filepath.EvalSymlinks(existing)
	}
	if err != nil {
		return err
	}
	return checkFolders(path, existing != folder)
}

// checkOwner returns an error if a file or folder belongs to another user than the caller and root.
func checkOwner(path string, info fs.FileInfo) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Uid == 0 || int(s.Uid) == os.Geteuid() {
		return nil
	}
	owner := strconv.Itoa(int(s.Uid))
	if u, err := user.LookupId(owner); err == nil {
		owner = u.Username
	}
	return fmt.Errorf("%s belongs to %s, who could know the key or exchange it: run ossl as that user, or give a folder of your own",
		path, owner)
}

// writable reports whether others can write to a folder. The group that a user has for himself, with
// his name, is not another one: many systems give it the right to write.
func writable(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	if mode&0o022 == 0 {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if mode&0o002 != 0 || !ok || int(s.Gid) != os.Getegid() {
		return true
	}
	group, err := user.LookupGroupId(strconv.Itoa(int(s.Gid)))
	if err != nil {
		return true
	}
	u, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	return err != nil || group.Name != u.Username
}
