package terminator

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryOfProcess returns the bytes of memory that the process may use, or 0 if that isn't known.
func memoryOfProcess() int64 {
	var info unix.Sysinfo_t
	least, err := groupMemory(os.ReadFile)
	if err != nil || unix.Sysinfo(&info) != nil {
		return 0
	}
	return min(least, int64(info.Totalram)*int64(info.Unit))
}

// groupMemory returns the least limit of the process's control groups, which contain one another:
// cgroups(7), version 2. It is an error if a limit can't be read.
func groupMemory(readFile func(string) ([]byte, error)) (int64, error) {
	least := int64(math.MaxInt64)
	groups, err := readFile("/proc/self/cgroup")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for line := range strings.Lines(string(groups)) {
		group, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		for ; ok; group = path.Dir(group) {
			text, err := readFile(path.Join("/sys/fs/cgroup", group, "memory.max")) // "max" if there is no limit
			if err != nil && !errors.Is(err, fs.ErrNotExist) {                      // the root has no file
				return 0, err
			}
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				least = min(least, n)
			}
			ok = group != "/"
		}
	}
	return least, nil
}
