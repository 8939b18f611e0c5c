package terminator

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock. Unix sockets may be connected to, and signals sent.
const (
	readFiles   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	makeSockets = unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
	writeFiles  = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR
	execute = unix.LANDLOCK_ACCESS_FS_EXECUTE
	// ofFiles are the rights that a rule for a file may have, and not only one for a folder.
	ofFiles = execute | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// allRights returns the rights to files that a version of the kernel's interface can deny, up to
// version 5.
func allRights(abi int) uint64 {
	switch {
	case abi >= 5:
		return unix.LANDLOCK_ACCESS_FS_IOCTL_DEV<<1 - 1
	case abi >= 3:
		return unix.LANDLOCK_ACCESS_FS_TRUNCATE<<1 - 1
	case abi == 2:
		return unix.LANDLOCK_ACCESS_FS_REFER<<1 - 1
	}
	return unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
}

// landlockVersion returns the version of the kernel's interface.
func landlockVersion() (abi int, err error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || n < 1 {
		return 0, errNoLandlock
	}
	return int(n), nil
}

// A ruleset is what Landlock leaves to a thread that enters it: the file descriptor of the kernel's.
type ruleset int

// newRuleset makes the ruleset of a domain.
func newRuleset(d *domain) (ruleset, error) {
	attribute := unix.LandlockRulesetAttr{Handled_access_fs: allRights(d.ABI)}
	size := unsafe.Sizeof(attribute.Handled_access_fs) // all that the first versions know
	if d.ABI >= connectABI {
		size += unsafe.Sizeof(attribute.Handled_access_net)
		if !d.Connect {
			attribute.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attribute)), size, 0)
	if errno != 0 {
		return -1, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	r := ruleset(n)
	if err := r.add(d, attribute.Handled_access_fs); err != nil {
		r.close()
		return -1, err
	}
	return r, nil
}

// add adds the rules of a domain. handled are the rights that the ruleset denies otherwise.
func (r ruleset) add(d *domain, handled uint64) error {
	type rule struct {
		rights   uint64
		paths    []string
		optional bool // paths that don't exist are left out
	}
	rules := []rule{
		{readFiles, d.Read, true},
		{makeSockets, d.Sockets, false},
		{writeFiles, d.Write, false},
		{execute, programFolders(), false},
		{unix.LANDLOCK_ACCESS_FS_READ_FILE, []string{"/dev/random", "/dev/urandom", "/dev/zero"}, true},
		{unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE,
			[]string{"/dev/null"}, true},
		{unix.LANDLOCK_ACCESS_FS_WRITE_FILE, writtenFiles(), true},
	}
	for _, rule := range rules {
		for _, path := range rule.paths {
			err := r.addPath(path, rule.rights&handled)
			if err != nil && !(rule.optional && errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
	}
	return nil
}

// addPath allows rights to a file, or to a folder and all below.
func (r ruleset) addPath(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	if rights == 0 {
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return &fs.PathError{Op: "landlock_add_rule", Path: path, Err: errno}
	}
	return nil
}

// enter restricts the thread that calls it, for good.
func (r ruleset) enter() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r), 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}

func (r ruleset) close() { _ = unix.Close(int(r)) }

// writtenFiles returns the files that package ossl appends to if the environment names them. They are
// made here, as it does, since a confined process can't.
func writtenFiles() (files []string) {
	for _, variable := range []string{"OSSL_KEYLOG", "OSSL_TRACE"} {
		name := os.Getenv(variable)
		if name == "" || variable == "OSSL_TRACE" && name == "stderr" || privileged() {
			continue
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o600)
		if err == nil {
			_ = f.Close()
		}
		files = append(files, name)
	}
	return files
}

// programFile returns the file of this program, under its name without symbolic links.
func programFile() (string, error) {
	file, err := os.Executable()
	if err == nil {
		file, err = resolve(file)
	}
	if err != nil {
		return "", fmt.Errorf("the program doesn't find its own file: %w", err)
	}
	return file, nil
}

// programFolders returns the folders in which the programs are that are executed now and at a restart:
// this one, which may be replaced by then, and its loader.
func programFolders() (folders []string) {
	program, err := programFile()
	if err != nil {
		return nil
	}
	add := func(file string) {
		if path, err := resolve(file); err == nil {
			folders = append(folders, filepath.Dir(path))
		}
	}
	add(program)
	f, err := elf.Open(program)
	if err != nil {
		return folders
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err == nil {
				add(strings.TrimRight(string(name), "\x00"))
			}
		}
	}
	return folders
}

// systemFolders returns the folders of files that the process may read in addition to its
// configuration's folders: they hold libraries and the system's configuration, which a restart reads
// anew.
func systemFolders() (folders []string) {
	add := func(names ...string) {
		for _, name := range names {
			if path, err := resolve(name); err == nil && path != "/" {
				folders = append(folders, path)
			}
		}
	}
	// /proc shows no secrets of processes outside of the domain, which can't be traced either.
	add("/usr", "/lib", "/lib32", "/lib64", "/etc", "/proc", "/sys/fs/cgroup", "/sys/devices/system/cpu", "/sys/kernel/mm")
	// Links out of /etc, on some systems.
	for _, name := range []string{"resolv.conf", "hosts", "nsswitch.conf", "passwd", "group", "services", "localtime", "ld.so.cache",
		"ssl/openssl.cnf", "ssl/cert.pem", "ssl/ca-bundle.pem", "ssl/certs/ca-certificates.crt"} {
		if path, err := resolve("/etc/" + name); err == nil {
			add(filepath.Dir(path))
		}
	}
	// Links of /etc/resolv.conf may lead there later.
	add("/etc/ssl/certs", "/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf")
	for _, folder := range programFolders() {
		add(folder)
	}
	for _, variable := range []string{"OPENSSL_CONF", "SSL_CERT_FILE", "OSSL_LIBRARY"} {
		if value := os.Getenv(variable); strings.ContainsRune(value, '/') {
			add(filepath.Dir(value))
		}
	}
	for _, variable := range []string{"OPENSSL_MODULES", "SSL_CERT_DIR", "LD_LIBRARY_PATH", "ZONEINFO"} {
		for _, folder := range filepath.SplitList(os.Getenv(variable)) {
			if folder != "" {
				add(folder)
			}
		}
	}
	add(mappedFolders()...)
	return folders
}

// mappedFolders returns the folders of the libraries that are loaded.
func mappedFolders() (folders []string) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// ADDRESSES PERMISSIONS OFFSET DEVICE INODE PATH, as of proc_pid_maps(5)
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || !strings.HasPrefix(fields[5], "/") || strings.HasSuffix(lines.Text(), " (deleted)") {
			continue
		}
		_, path, _ := strings.Cut(lines.Text(), "/")
		if folder := filepath.Dir("/" + path); len(folders) == 0 || folders[len(folders)-1] != folder {
			folders = append(folders, folder)
		}
	}
	return folders
}
