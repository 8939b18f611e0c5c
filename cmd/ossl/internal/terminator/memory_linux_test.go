package terminator_test

import (
	"math"
	"os"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestGroupMemory: the limits of all control groups around the process count.
func TestGroupMemory(t *testing.T) {
	const mount = "/sys/fs/cgroup"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no groups": {nil, math.MaxInt64},
		"version 1": {map[string]string{"/proc/self/cgroup": "4:memory:/a\n", mount + "/a/memory.max": "7\n"}, math.MaxInt64},
		"container": {map[string]string{"/proc/self/cgroup": "0::/\n", mount + "/memory.max": "1024\n"}, 1024},
		"unit": {map[string]string{"/proc/self/cgroup": "1:name=x:/y\n0::/system.slice/a.service\n",
			mount + "/system.slice/a.service/memory.max": "2048\n", mount + "/system.slice/memory.max": "max\n"}, 2048},
		"the outer one is less": {map[string]string{"/proc/self/cgroup": "0::/b/c\n", mount + "/b/c/memory.max": "max\n",
			mount + "/b/memory.max": "512\n"}, 512},
	} {
		got, err := terminator.GroupMemory(func(name string) ([]byte, error) {
			if text, ok := c.files[name]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		})
		if got != c.want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.want)
		}
	}
	for _, unreadable := range []string{"/proc/self/cgroup", mount + "/a/memory.max"} {
		if got, err := terminator.GroupMemory(func(name string) ([]byte, error) {
			if name == unreadable {
				return nil, syscall.EMFILE
			}
			return []byte("0::/a\n"), nil
		}); err == nil {
			t.Errorf("%s can't be read: %d", unreadable, got)
		}
	}
}
