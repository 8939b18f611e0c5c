//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// processes returns a process and its children, which come last.
func processes(pid int) []string {
	name := strconv.Itoa(pid)
	children, _ := os.ReadFile("/proc/" + name + "/task/" + name + "/children")
	return append([]string{name}, strings.Fields(string(children))...)
}

var libsslMapping = regexp.MustCompile(`(?m)/\S*/libssl\.so\S*$`)

// libssl returns the file of the libssl that a process uses.
func libssl(pid string) (string, error) {
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		return "", err
	}
	if file := libsslMapping.Find(maps); file != nil {
		return string(file), nil
	}
	return "", errors.New("the server uses no libssl")
}

// processorTime returns the processor time of processes, with all their threads.
func processorTime(pids []string) (sum time.Duration, err error) {
	for _, pid := range pids {
		n, err := strconv.Atoi(pid)
		if err != nil {
			return 0, err
		}
		clock := ^int32(n)<<3 | 2 // as clock_getcpuclockid(3) makes it
		var t syscall.Timespec
		_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&t)), 0)
		if errno != 0 {
			return 0, fmt.Errorf("the clock of process %d: %w", n, errno)
		}
		sum += time.Duration(t.Nano())
	}
	return sum, nil
}

// startRelaxed starts a program with a timer slack, which it inherits from the thread that starts it:
// prctl(2), PR_SET_TIMERSLACK. The thread then has its own again: it can't end before the program,
// which Pdeathsig would end.
func startRelaxed(cmd *exec.Cmd, slack time.Duration) error {
	if slack == 0 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := func(slack time.Duration) error {
		_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, uintptr(slack), 0)
		if errno != 0 {
			return fmt.Errorf("timer slack: %w", errno)
		}
		return nil
	}
	if err := set(slack); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), set(0)) // 0 stands for the thread's own
}
