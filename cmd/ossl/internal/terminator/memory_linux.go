package terminator

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryOfProcess returns the bytes of memory that the process may use, or 0 if that isn't known.
func memoryOfProcess() int64 {
	least := groupMemory(os.ReadFile)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		least = min(least, int64(info.Totalram)*int64(info.Unit))
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// groupMemory returns the least limit of the process's control groups, which contain one another:
// cgroups(7), version 2.
func groupMemory(readFile func(string) ([]byte, error)) int64 {
	least := int64(math.MaxInt64)
	groups, _ := readFile("/proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		group, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		for ; ok; group = path.Dir(group) {
			text, _ := readFile(path.Join("/sys/fs/cgroup", group, "memory.max")) // "max" if there is no limit; the root has no file
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				least = min(least, n)
			}
			ok = group != "/"
		}
	}
	return least
}
