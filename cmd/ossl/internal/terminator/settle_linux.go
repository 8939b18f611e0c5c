package terminator

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Timer slacks in nanoseconds: prctl(2), PR_SET_TIMERSLACK.
const (
	kernelSlack = 50_000    // the kernel's default
	serverSlack = 2_000_000 // docs/PERFORMANCE.md has its effect
)

// timersAreDue reports whether the kernel shall wake the threads up to 2 ms late, which saves a
// server most of the looks that the Go scheduler takes at its threads. It shall not if somebody has
// chosen another slack than the kernel's default, such as TimerSlackNSec= of systemd. Threads inherit
// it from the one that starts them, and others than the own can't be changed without CAP_SYS_NICE.
func timersAreDue() bool {
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return err == nil && now == kernelSlack
}

// executeAgain executes the program in a thread that has entered a domain, unless that is nil, and has
// its timers relaxed. If it returns nil, this process goes on as it is.
func (in *Inherited) executeAgain(p *confinement, d *domain, last func() error) error {
	file, err := programFile()
	if err != nil {
		in.timers = err
		return nil
	}
	rules := ruleset(-1)
	if d != nil {
		if rules, err = newRuleset(d); err != nil {
			if err = in.withoutLandlock(p, err); err != nil || !timersAreDue() {
				return err
			}
			d = nil
		}
	}
	if d != nil {
		defer rules.close()
	}
	e := &execution{file: file, args: CommandLine(), rules: rules, last: last}
	defer e.undo()
	if err := e.prepare(p.text, in, d); err != nil {
		return err
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread exits with the goroutine
		result <- e.run()
	}()
	switch err := <-result; {
	case err == nil || e.failed == atTheEnd:
		return err
	case d == nil:
		in.timers = err
		return nil
	case e.failed == atTheDomain:
		return in.withoutLandlock(p, err)
	default:
		return fmt.Errorf("landlock: the program can't be executed in its domain: %w; use landlock off if a sandbox forbids it", err)
	}
}

// CommandLine returns the arguments with which the kernel has executed the program, at
// [os.Executable]: os.Args, and before them the loader's arguments, if it was started as a program of
// its own.
func CommandLine() []string {
	text, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		return os.Args
	}
	line := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	if own := len(line) - len(os.Args); own < 0 || !slices.Equal(line[own+1:], os.Args[1:]) { // the name may have been changed
		return os.Args
	}
	return line
}

// An execution executes a program in place.
type execution struct {
	file        string
	args, env   []string
	rules       ruleset // or -1
	last        func() error
	descriptors []int // to keep
	own         []*os.File
	failed      step
}

// A step of an execution.
type step int

const (
	atTheDomain step = iota + 1
	atTheEnd         // in the function that is called last
	atTheProgram
)

// prepare collects the file descriptors and the environment.
func (e *execution) prepare(config []byte, in *Inherited, d *domain) error {
	state := handoverState{From: os.Getpid(), Domain: in.domain, Unconfined: in.unconfined, Keys: in.keysPipe, KeysFor: in.keysFor,
		Moves: in.moves}
	if d != nil {
		state.Domain = d
	}
	for _, s := range in.sockets {
		f, err := duplicate(s.listener)
		if err != nil {
			return err
		}
		e.own = append(e.own, f)
		state.Sockets = append(state.Sockets, handedSocket{int(f.Fd()), s.place, s.made})
		e.descriptors = append(e.descriptors, int(f.Fd()))
	}
	if in.ready != nil {
		state.Ready = int(in.ready.Fd())
		e.descriptors = append(e.descriptors, state.Ready)
	}
	for _, fd := range []int{in.keysPipe, in.moves} {
		if fd != 0 {
			e.descriptors = append(e.descriptors, fd)
		}
	}
	if f := memoryFile(config); f != nil {
		e.own = append(e.own, f)
		state.Config = int(f.Fd())
		e.descriptors = append(e.descriptors, state.Config)
	}
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	e.env = append(os.Environ(), handoverVariable+"="+string(text))
	if privileged() { // which the program may be no longer, and then trusts them
		e.env = slices.DeleteFunc(e.env, func(entry string) bool {
			return slices.ContainsFunc([]string{"LD_", "OPENSSL_", "OSSL_LIBRARY", "SSL_CERT_"},
				func(prefix string) bool { return strings.HasPrefix(entry, prefix) })
		})
	}
	return nil
}

// memoryFile returns a file without a name that has a text, or nil if there is no text, or the kernel
// makes none.
func memoryFile(text []byte) *os.File {
	if text == nil {
		return nil
	}
	fd, err := unix.MemfdCreate("configuration", unix.MFD_CLOEXEC)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "configuration")
	if _, err := f.WriteAt(text, 0); err != nil {
		_ = f.Close()
		return nil
	}
	return f
}

// run executes the program in the thread that calls it. It returns only if it fails.
func (e *execution) run() error {
	if timersAreDue() { // of this thread; a failure is no reason to stop
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, serverSlack, 0, 0, 0)
	}
	if e.rules >= 0 {
		if err := e.rules.enter(); err != nil {
			e.failed = atTheDomain
			return err
		}
	}
	if err := e.last(); err != nil {
		e.failed = atTheEnd
		return err
	}
	e.failed = atTheProgram
	// The program's first thread has the mask of this one, so signals wait until Go's runtime handles
	// them. It unblocks the most of them, and the others when package os/signal asks for them.
	var waiting unix.Sigset_t
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR2} {
		bits := int(8 * unsafe.Sizeof(waiting.Val[0]))
		waiting.Val[(int(s)-1)/bits] |= 1 << ((int(s) - 1) % bits)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &waiting, nil); err != nil {
		return os.NewSyscallError("sigmask", err)
	}
	for _, fd := range e.descriptors {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
	}
	return &os.PathError{Op: "exec", Path: e.file, Err: syscall.Exec(e.file, e.args, e.env)}
}

// undo closes the descriptors that were made for the program, and keeps the others from programs.
func (e *execution) undo() {
	for _, fd := range e.descriptors {
		syscall.CloseOnExec(fd)
	}
	for _, f := range e.own {
		_ = f.Close()
	}
}

// privileged reports whether the process has more rights than the user who started it, such as its
// file's rights: getauxval(3), AT_SECURE.
func privileged() bool {
	const atSecure = 23
	vector, err := unix.Auxv()
	return err != nil || slices.ContainsFunc(vector, func(v [2]uintptr) bool { return v[0] == atSecure && v[1] != 0 })
}
