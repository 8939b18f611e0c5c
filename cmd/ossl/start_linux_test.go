package main

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// startAndStop starts a server, and returns the line of its log that reports that it listens.
func startAndStop(t *testing.T, cmd *exec.Cmd) (line string) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(stderr)
	for !strings.Contains(line, "msg=listening") {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v, %v", line, err, cmd.Wait())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, lines)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	return line
}

// TestStartWithoutProc: a server works if there is no /proc, as in a chroot. It reports that it
// can't be confined, since the program can't be executed again.
func TestStartWithoutProc(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can hide /proc: run the test as root")
	}
	mount, err := exec.LookPath("mount")
	if err != nil {
		t.Skip("mount is not installed")
	}
	s := newService(t)
	hidden := func(args string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", mount+" -t tmpfs none /proc || exit 77; exec ossl serve --cert localhost.pem "+
			"--key localhost-key.pem --listen 127.0.0.1:0 "+args+" public")
		cmd.Dir = s.dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		return cmd
	}
	try := hidden("--help")
	if text, err := try.CombinedOutput(); err != nil {
		t.Skipf("this sandbox doesn't let root hide /proc: %v\n%s", err, text)
	}
	const reason = "the program doesn't find its own file"
	for args, want := range map[string]string{
		"--landlock auto":             `landlock="not used: ` + reason,
		"--landlock off":              "landlock=off",
		"--landlock auto --engine go": `landlock="not used: ` + reason,
	} {
		if line := startAndStop(t, hidden(args)); !strings.Contains(line, want) {
			t.Errorf("%s: %q, want %q", args, line, want)
		}
	}
	if text, err := hidden("--landlock on").CombinedOutput(); err == nil || !strings.Contains(string(text), "landlock: "+reason) {
		t.Errorf("--landlock on: %v, %s", err, text)
	}
}

// TestStartByLoader: a server that was started by the loader, as a program of its own, starts, restarts and
// is confined like others.
func TestStartByLoader(t *testing.T) {
	program, err := exec.LookPath("ossl")
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	section := f.Section(".interp")
	if section == nil {
		t.Skip("the program is linked statically: it has no loader")
	}
	name, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	loader := strings.TrimRight(string(name), "\x00")
	link := filepath.Join(t.TempDir(), "ossl") // a test's program is found by its name
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	s := newService(t)
	s.startProgram(loader, link, "serve", "--cert", "localhost.pem", "--key", "localhost-key.pem",
		"--listen", "127.0.0.1:0", "public")
	client := s.client("tcp", s.address, false, false)
	for range 2 {
		if err := get(client, "https://localhost/"); err != nil {
			t.Error(err)
		}
		s.restart()
	}
	s.stop()
}

// TestProcessOne: a server that is process 1, as in a container, starts, and obeys SIGTERM.
func TestProcessOne(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a process 1: run the test as root")
	}
	s := newService(t)
	cmd := exec.Command("ossl", "serve", "--cert", "localhost.pem", "--key", "localhost-key.pem",
		"--listen", "127.0.0.1:0", "public")
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	try := exec.Command("true")
	try.SysProcAttr = cmd.SysProcAttr
	if err := try.Run(); err != nil {
		t.Skipf("this sandbox doesn't let root make a process 1: %v", err)
	}
	startAndStop(t, cmd)
}

// TestFileCapability: a server whose file has the capability for ports below 1024 has such a port after
// it has been executed again.
func TestFileCapability(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file capabilities: run the test as root")
	}
	first, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if n, _ := strconv.Atoi(strings.TrimSpace(string(first))); err != nil || n < 1024 {
		t.Skipf("all users have ports below 1024 here: %q, %v", first, err)
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	s := newService(t)
	program, err := exec.LookPath("ossl")
	if err != nil {
		t.Fatal(err)
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	file := s.path("ossl")
	if err := os.WriteFile(file, text, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".", "public", "public/index.html", "localhost-key.pem"} {
		if err := os.Chown(s.path(name), uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	start := func() *exec.Cmd {
		cmd := exec.Command(file, "serve", "--cert", "localhost.pem", "--key", "localhost-key.pem",
			"--listen", "127.0.0.1:"+freeLowPort(t), "public")
		cmd.Dir = s.dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		return cmd
	}
	if text, err := start().CombinedOutput(); err == nil || !strings.Contains(string(text), "permission denied") {
		t.Fatalf("without the capability: %v, %s", err, text)
	}
	// struct vfs_cap_data: version 2, in force at once; the permitted and the inheritable ones, twice.
	var data []byte
	const version, inForce = 0x02000000, 1
	for _, word := range []uint32{version | inForce, 1 << unix.CAP_NET_BIND_SERVICE, 0, 0, 0} {
		data = binary.LittleEndian.AppendUint32(data, word)
	}
	if err := unix.Setxattr(file, "security.capability", data, 0); err != nil {
		t.Skipf("this file system has no capabilities: %v", err)
	}
	line := startAndStop(t, start())
	if abi, err := os.ReadFile("/sys/kernel/security/lsm"); err == nil && strings.Contains(string(abi), "landlock") &&
		!strings.Contains(line, `landlock="ABI `) {
		t.Error(line)
	}
}

// freeLowPort returns a port below 1024 on which nobody listens.
func freeLowPort(t *testing.T) string {
	t.Helper()
	for port := 1023; port > 600; port-- {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return strconv.Itoa(port)
		}
	}
	t.Skip("all ports from 601 to 1023 are in use")
	return ""
}
