package terminator

import (
	"bufio"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Rights of Landlock. Unix sockets may be connected to, and signals sent: on kernels before 6.15
// Landlock's scope of signals separates the threads of a process.
const (
	readFiles   = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSReadDir)
	makeSockets = landlock.AccessFSSet(ll.AccessFSMakeSock | ll.AccessFSRemoveFile)
	execute     = landlock.AccessFSSet(ll.AccessFSExecute)
	allFiles    = landlock.AccessFSSet(ll.AccessFSIoctlDev<<1 - 1) // those of ABI 5
)

// restrict has Landlock restrict all threads to a domain, and returns the version of the kernel's
// interface.
func restrict(d *domain) (abi int, err error) {
	abi, err = ll.LandlockGetABIVersion()
	if err != nil || abi < 1 {
		return 0, errNoLandlock
	}
	rules := []landlock.Rule{
		landlock.PathAccess(readFiles, d.Read...).IgnoreIfMissing(),
		landlock.PathAccess(makeSockets, d.Sockets...),
		landlock.PathAccess(execute, programFolders()...),
		landlock.PathAccess(ll.AccessFSReadFile, "/dev/random", "/dev/urandom", "/dev/zero").IgnoreIfMissing(),
		landlock.PathAccess(ll.AccessFSReadFile|ll.AccessFSWriteFile|ll.AccessFSTruncate, "/dev/null").IgnoreIfMissing(),
	}
	// Files that package ossl writes, for a new process too, which makes none.
	for _, variable := range []string{"OSSL_KEYLOG", "OSSL_TRACE"} {
		if info, err := os.Stat(os.Getenv(variable)); err == nil && !info.IsDir() {
			rules = append(rules, landlock.PathAccess(ll.AccessFSWriteFile, os.Getenv(variable)))
		}
	}
	config := landlock.MustConfig(allFiles)
	if !d.Connect {
		config = landlock.MustConfig(allFiles, landlock.AccessNetSet(ll.AccessNetConnectTCP))
	}
	return abi, config.BestEffort().Restrict(rules...)
}

// programFolders returns the folders in which the programs are that a restart executes: this one,
// which may be replaced by then, and its loader.
func programFolders() (folders []string) {
	program, err := os.Executable()
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

// systemFolders returns the folders of files that the process may read, in addition to those of its
// configuration: those of libraries and of the system's configuration, which a restart reads anew.
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
