package terminator_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// forbiddenVariable is the environment variable of the process in which TestConfinedForbidden
// forbids Landlock. It names a folder and a certificate.
const forbiddenVariable = "OSSL_TEST_LANDLOCK_FORBIDDEN"

// TestConfinedForbidden: in a process in which a sandbox forbids Landlock, a server that needs it
// doesn't start, and one that doesn't says so.
func TestConfinedForbidden(t *testing.T) {
	w := newWorld(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestConfinedForbiddenProcess$", "-test.v")
	cmd.Env = append(os.Environ(), forbiddenVariable+"="+w.folder(nil)+"|"+w.pair(false, "localhost").Cert)
	text, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(text), "--- PASS: TestConfinedForbiddenProcess") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestConfinedForbiddenProcess is the process of TestConfinedForbidden.
func TestConfinedForbiddenProcess(t *testing.T) {
	folder, cert, ok := strings.Cut(os.Getenv(forbiddenVariable), "|")
	if !ok {
		t.Skip("it changes the process for good: " + forbiddenVariable + " is missing, which TestConfinedForbidden sets")
	}
	forbid(t, unix.SYS_LANDLOCK_CREATE_RULESET)
	for mode, want := range map[string]string{
		"auto": "not used: this kernel doesn't have it, or a sandbox forbids it",
		"on":   "landlock: this kernel doesn't have it",
		"off":  "off",
	} {
		c := &terminator.Config{Listen: []string{"127.0.0.1:0"}, Engine: "go", Landlock: mode, Limits: terminator.DefaultLimits(),
			Sites: []terminator.Site{{Root: folder, Pairs: []terminator.Pair{{Cert: cert,
				Key: strings.TrimSuffix(cert, ".pem") + "-key.pem"}}}}}
		log := slog.New(slog.DiscardHandler)
		s, err := terminator.Start(context.Background(), c, log, log)
		if mode == "on" {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("on: error %v, want %q", err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", mode, err)
			continue
		}
		if got := s.Landlock(); got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
		s.Drain(context.Background())
	}
}

// forbid has all threads get EPERM from a system call: seccomp(2).
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
