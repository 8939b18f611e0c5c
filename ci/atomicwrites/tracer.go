//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// Constants of ptrace(2) that package syscall lacks.
const (
	ptraceSeize     = 0x4206
	ptraceInterrupt = 0x4207
	traceClone      = 1 << syscall.PTRACE_EVENT_CLONE
	exitKill        = 1 << 20
	allThreads      = 0x40000000 // wait4's __WALL
)

// A tracer counts the atomic writes of a process.
type tracer struct {
	pid    int
	now    atomic.Int64 // the operation, from 1 on; 0: none
	memory *os.File
	sites  map[uint64]*site
	image  span // the program, with the variables of ossl's C

	mu    sync.Mutex
	lines map[uint64]*[times]int // OpenSSL's writes by cache line
	words map[uint64]*[times]int // ossl's by address, because small objects of several connections may share a line
}

// shared returns OpenSSL's writes to its hottest shared line, and ossl's to all shared words, and resets the counts.
func (t *tracer) shared() (hottest, ours int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.lines {
		hottest = max(hottest, median(*n))
	}
	for _, n := range t.words {
		ours += median(*n)
	}
	clear(t.lines)
	clear(t.words)
	return hottest, ours
}

func (t *tracer) note(s *site, address uint64) {
	i := t.now.Load() - 1
	if i < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	in, key := t.lines, address>>6
	if s.ours || address >= t.image.from && address < t.image.to {
		in, key = t.words, address
	}
	if in[key] == nil {
		in[key] = new([times]int)
	}
	in[key][i]++
}

// run attaches to the process, sends the result to ready, and counts until the process exits. ptrace requests must come from the
// thread that attached.
func (t *tracer) run(self string, ready chan<- error) {
	runtime.LockOSThread()
	err := t.attach(self)
	ready <- err
	if err == nil {
		t.loop()
	}
}

func (t *tracer) attach(self string) (err error) {
	if t.sites, t.image, err = sitesOf(t.pid, self); err != nil {
		return err
	}
	stopped := map[int]bool{}
	for before := -1; before < len(stopped); {
		before = len(stopped)
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", t.pid))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			tid, _ := strconv.Atoi(thread.Name())
			if stopped[tid] {
				continue
			}
			if _, _, e := syscall.RawSyscall6(syscall.SYS_PTRACE, ptraceSeize, uintptr(tid), 0, traceClone|exitKill, 0, 0); e != 0 {
				return fmt.Errorf("ptrace: %w", e)
			}
			syscall.RawSyscall6(syscall.SYS_PTRACE, ptraceInterrupt, uintptr(tid), 0, 0, 0, 0)
			if _, err := syscall.Wait4(tid, nil, allThreads, nil); err != nil {
				return err
			}
			stopped[tid] = true
		}
	}
	if t.memory, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", t.pid), os.O_RDWR, 0); err != nil {
		return err
	}
	for _, s := range t.sites {
		var code [1]byte
		if _, err := t.memory.ReadAt(code[:], int64(s.at)); err != nil {
			return err
		}
		s.code = code[0]
		if err := t.put(s.at, 0xcc); err != nil {
			return err
		}
	}
	for tid := range stopped {
		if err := syscall.PtraceCont(tid, 0); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracer) put(at uint64, code byte) error {
	_, err := t.memory.WriteAt([]byte{code}, int64(at))
	return err
}

// loop handles breakpoints until the process exits. Requests fail once it has been killed, so their errors are ignored.
func (t *tracer) loop() {
	defer t.memory.Close()
	for {
		var status syscall.WaitStatus
		tid, err := syscall.Wait4(-1, &status, allThreads, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || tid == t.pid && !status.Stopped():
			return
		case !status.Stopped():
		case status>>16 != 0: // a thread has started
			_ = syscall.PtraceCont(tid, 0)
		case status.StopSignal() != syscall.SIGTRAP:
			_ = syscall.PtraceCont(tid, int(status.StopSignal()))
		default:
			later := 0
			var r syscall.PtraceRegs
			if syscall.PtraceGetRegs(tid, &r) == nil {
				if s := t.sites[r.Rip-1]; s != nil {
					later = t.step(tid, s, &r)
				}
			}
			_ = syscall.PtraceCont(tid, later)
		}
	}
}

// step counts a write and executes its instruction. It returns a signal that arrived during that, or 0.
func (t *tracer) step(tid int, s *site, r *syscall.PtraceRegs) (later int) {
	r.Rip = s.at
	if syscall.PtraceSetRegs(tid, r) != nil || t.put(s.at, s.code) != nil {
		return 0
	}
	t.note(s, s.address(r))
	for r.Rip == s.at {
		var status syscall.WaitStatus
		if syscall.PtraceSingleStep(tid) != nil {
			break
		}
		if _, err := syscall.Wait4(tid, &status, allThreads, nil); err != nil || !status.Stopped() {
			break
		}
		if status.StopSignal() != syscall.SIGTRAP {
			later = int(status.StopSignal())
		}
		if syscall.PtraceGetRegs(tid, r) != nil {
			break
		}
	}
	_ = t.put(s.at, 0xcc)
	return later
}
