package load

import (
	"syscall"
	"time"
	"unsafe"
)

// ThreadClock is the clock of the calling thread's processor time.
const ThreadClock = 3

// ProcessClock returns the clock of a process's processor time, with all its threads, as
// clock_getcpuclockid(3) makes it.
func ProcessClock(pid int) int32 { return ^int32(pid)<<3 | 2 }

// Clock returns the time of a clock.
func Clock(id int32) (time.Duration, error) {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0, errno
	}
	return time.Duration(t.Nano()), nil
}
