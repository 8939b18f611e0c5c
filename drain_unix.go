//go:build unix && !aix

package ossl

import "syscall"

// receiveNow receives what a socket has for p, without waiting, whatever mode the socket is in: os.File.Fd may have changed it.
func receiveNow(fd uintptr, p []byte) int {
	for {
		n, _, err := syscall.Recvfrom(int(fd), p, syscall.MSG_DONTWAIT)
		if err != syscall.EINTR {
			return n
		}
	}
}
