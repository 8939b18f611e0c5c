package confgen

import (
	"slices"
	"syscall"
)

// kernelFiles are the magic numbers of statfs(2) for file systems whose files the kernel writes: proc,
// sysfs, debugfs, tracefs, securityfs, and both of cgroups.
var kernelFiles = []int64{0x9fa0, 0x62656572, 0x64626720, 0x74726163, 0x73636673, 0x27e0eb, 0x63677270}

// isKernels reports whether the kernel makes up a file, such as those in /proc. Reading these can wait, has
// effects, or tells secrets.
func isKernels(path string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(path, &fs) == nil && slices.Contains(kernelFiles, int64(fs.Type))
}
