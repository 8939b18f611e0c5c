//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTimerSlack: all threads of a server have the slack, also later threads, and the threads of
// the new process after a restart. A slack that isn't the default stays.
func TestTimerSlack(t *testing.T) {
	const set = "2000000"
	for before, want := range map[int]string{50_000: set, 40_000: "40000", 3_000_000: "3000000"} {
		t.Run(strconv.Itoa(before), func(t *testing.T) {
			s := newService(t)
			runtime.LockOSThread() // the thread exits with the goroutine; the server inherits its slack
			if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(before), 0, 0, 0); err != nil {
				t.Fatal(err)
			}
			s.start("serve", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "127.0.0.1:0", "public")
			for range 20 { // threads for their connections
				if err := get(s.client("tcp", s.address, false, false), "https://localhost/"); err != nil {
					t.Fatal(err)
				}
			}
			expectSlack(t, s.pid, want)
			s.restart()
			expectSlack(t, s.pid, want)
			s.stop()
		})
	}
}

// expectSlack checks the slack of all threads of a process.
func expectSlack(t *testing.T, pid int, want string) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) < 3 {
		t.Fatalf("%q, %v", threads, err)
	}
	for _, thread := range threads {
		got, err := os.ReadFile("/proc/" + filepath.Base(thread) + "/timerslack_ns")
		switch {
		case errors.Is(err, fs.ErrPermission):
			t.Skip("CAP_SYS_NICE is missing, which reading a thread's timer slack needs")
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH): // it has exited
		case err != nil || strings.TrimSpace(string(got)) != want:
			t.Errorf("%s: %q, %v, want %s", thread, got, err, want)
		}
	}
}
