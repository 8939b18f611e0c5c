//go:build unix

package terminator

import (
	"net"
	"os"
	"syscall"
	"time"
)

// waitReadable waits until a connection has data or is closed, without a buffer. It reports whether
// it could wait: connections of other kinds need a buffer for that.
func waitReadable(c *idleConn) (bool, error) {
	var wait func() error
	switch conn := c.Conn.(type) {
	case interface{ WaitRead() error }: // *ossl.Conn
		wait = conn.WaitRead
	case *net.TCPConn:
		wait = func() error { return waitSocket(conn) }
	case *net.UnixConn:
		wait = func() error { return waitSocket(conn) }
	default:
		return false, nil
	}
	if len(c.early) > 0 {
		return true, nil
	}
	for deadline := c.activity.until(c.idle); ; {
		if err := c.rest.setDeadline(c, deadline); err != nil {
			return true, err
		}
		err := wait()
		if err == nil || !os.IsTimeout(err) {
			return true, err
		}
		if deadline = c.activity.until(c.idle); time.Until(deadline) <= 0 {
			return true, err
		}
	}
}

func waitSocket(conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var b [1]byte
	var failed error // the socket returns an error such as ECONNRESET only once
	err = raw.Read(func(fd uintptr) bool {
		for {
			_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if err == syscall.EINTR {
				continue
			}
			if err == syscall.EAGAIN {
				return false
			}
			failed = err
			return true
		}
	})
	if err == nil && failed != nil {
		err = os.NewSyscallError("recvfrom", failed)
	}
	return err
}
