package tlstest

import (
	"errors"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// OwnNetwork moves the test's goroutine, and the programs that it starts, into a network namespace
// of their own, which has a loopback interface alone: for servers that can't be kept to 127.0.0.1.
// Other goroutines stay outside, those of the test among them. It skips the test if there can be no
// such namespace.
func OwnNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	err := syscall.Unshare(syscall.CLONE_NEWNET)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("no network namespace can be made, as only root can, outside of most containers: unshare: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	request := struct { // ifreq: netdevice(7)
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{name: [syscall.IFNAMSIZ]byte{'l', 'o'}, flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	if _, _, err := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(&request))); err != 0 {
		t.Fatalf("loopback: %v", err)
	}
}
