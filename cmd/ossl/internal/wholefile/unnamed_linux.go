package wholefile

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openUnnamed opens a file without a name in a folder: open(2), O_TMPFILE. Some file systems can't.
// Without /proc the file couldn't be given a name.
func openUnnamed(folder string) (*os.File, error) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return nil, err
	}
	return os.OpenFile(folder, unix.O_TMPFILE|os.O_WRONLY, 0o600)
}

// linkUnnamed gives such a file a name, which must not exist.
func linkUnnamed(file *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", file.Fd()), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}
