//go:build unix && !aix

package netio

import "syscall"

// receiveNow reads from a socket into p. It never waits, even if the socket is in blocking mode, as
// os.File.Fd may have set it.
func receiveNow(fd uintptr, p []byte) int {
	for {
		n, _, err := syscall.Recvfrom(int(fd), p, syscall.MSG_DONTWAIT)
		if err != syscall.EINTR {
			return n
		}
	}
}
