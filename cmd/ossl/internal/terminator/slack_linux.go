package terminator

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// Timer slacks in nanoseconds: prctl(2), PR_SET_TIMERSLACK.
const (
	kernelSlack = 50_000    // the kernel's default
	serverSlack = 2_000_000 // docs/PERFORMANCE.md has its effect
)

// RelaxTimers lets the kernel wake the threads of this process up to 2 ms late, those to come too,
// since threads inherit it. It saves a server the most of Go's looks at its threads. It does
// nothing if somebody has chosen another slack than the kernel's default, such as TimerSlackNSec=
// of systemd.
func RelaxTimers() error {
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || now != kernelSlack {
		return err
	}
	// Only psx reaches the threads of a program with cgo: /proc/TID/timerslack_ns needs CAP_SYS_NICE
	// for other threads than the writer's. This is done once, at the start: psx waits for every thread,
	// also if it hangs in a file system, and kills the process if Landlock denies it /proc.
	if _, _, errno := psx.Syscall6(syscall.SYS_PRCTL, unix.PR_SET_TIMERSLACK, serverSlack, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("timer slack: %w", errno)
	}
	return nil
}
