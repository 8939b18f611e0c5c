//go:build unix && !aix

package netio

import "syscall"

// sendSome sends b to a socket, or a part of it. It never waits, even if the socket is in blocking
// mode, as os.File.Fd may have set it.
func sendSome(fd uintptr, b []byte, flags int) (int, error) {
	for {
		n, err := syscall.SendmsgN(int(fd), b, nil, nil, syscall.MSG_DONTWAIT|flags)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
