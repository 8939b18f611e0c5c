package terminator_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// forbiddenVariable is the environment variable of the process in which TestConfinedForbidden forbids a
// system call. It names the call, the setting of Landlock, a folder and a certificate.
const forbiddenVariable = "OSSL_TEST_LANDLOCK_FORBIDDEN"

// TestConfinedForbidden: in a process in which a sandbox forbids a part of the confinement, a server
// that needs the part doesn't start, and one that doesn't need it reports the reason.
func TestConfinedForbidden(t *testing.T) {
	w := newWorld(t)
	var calls = map[string]uint32{"create": unix.SYS_LANDLOCK_CREATE_RULESET, "restrict": unix.SYS_LANDLOCK_RESTRICT_SELF,
		"execve": unix.SYS_EXECVE}
	for _, c := range []struct{ call, mode, want string }{
		{"create", "auto", "not used: this kernel doesn't have it, or a sandbox forbids it"},
		{"create", "on", "error: landlock: this kernel doesn't have it"},
		{"create", "off", "off"},
		{"restrict", "auto", "not used: landlock_restrict_self: operation not permitted"},
		{"restrict", "on", "error: landlock: landlock_restrict_self: operation not permitted"},
		{"execve", "auto", "error: landlock: the program can't be executed in its domain: exec "},
		{"execve", "on", "error: landlock: the program can't be executed in its domain: exec "},
		{"execve", "off", "off"}, // the timers stay as they are
	} {
		t.Run(c.call+" "+c.mode, func(t *testing.T) {
			if c.call != "create" {
				skipWithoutLandlock(t)
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestConfinedForbiddenProcess$", "-test.v")
			cmd.Env = append(os.Environ(), forbiddenVariable+"="+strings.Join([]string{
				strconv.Itoa(int(calls[c.call])), c.mode, w.folder(nil), w.pair(false, "localhost").Cert}, "|"))
			runtime.LockOSThread() // the thread exits with the goroutine
			slack := 40_000        // so that the program isn't executed again for the sake of its timers
			if c.call == "execve" {
				slack = 50_000
			}
			if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0); err != nil {
				t.Fatal(err)
			}
			text, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(text), "\nresult: "+c.want) {
				t.Errorf("%v, want %q\n%s", err, c.want, text)
			}
		})
	}
}

// TestConfinedForbiddenProcess is the process of TestConfinedForbidden.
func TestConfinedForbiddenProcess(t *testing.T) {
	parts := strings.Split(os.Getenv(forbiddenVariable), "|")
	if len(parts) != 4 {
		t.Skip("it changes the process for good: " + forbiddenVariable + " is missing, which TestConfinedForbidden sets")
	}
	call, err := strconv.Atoi(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	mode, folder, cert := parts[1], parts[2], parts[3]
	forbid(t, uint32(call))
	c := &terminator.Config{Listen: []string{"127.0.0.1:0"}, Engine: "go", Landlock: mode, Limits: terminator.DefaultLimits(),
		Sites: []terminator.Site{{Root: folder, Pairs: []terminator.Pair{{Cert: cert,
			Key: strings.TrimSuffix(cert, ".pem") + "-key.pem"}}}}}
	s, err := settled(t, c)
	if err != nil {
		fmt.Printf("\nresult: error: %v\n", err)
		return
	}
	fmt.Printf("\nresult: %s\n", s.Landlock())
	s.Drain(context.Background())
}

// forbid makes a system call fail with EPERM in all threads: seccomp(2).
func forbid(t *testing.T, call uint32) {
	t.Helper()
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4}, // the number of the call
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: call, SkipFalse: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	if err != nil {
		t.Fatal(err)
	}
	var filter []unix.SockFilter
	for _, i := range program {
		filter = append(filter, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attribute := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&attribute)))
	if errno != 0 {
		t.Fatal(errno)
	}
}
