package terminator

import (
	"net"

	"golang.org/x/sys/unix"
)

// isClosed reports whether a TCP connection without TLS is closed in both directions, as after a
// reset.
func isClosed(conn net.Conn) bool {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	closed := false
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		closed = err == nil && info.State == unix.BPF_TCP_CLOSE
	})
	return err == nil && closed
}

// unsent returns the number of bytes that the peer of a TCP connection has not taken yet: its kernel
// has not acknowledged them. known is false for other connections, and for one that is closed.
func unsent(conn net.Conn) (bytes int, known bool) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok || isClosed(conn) {
		return 0, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, false
	}
	var failed error
	err = raw.Control(func(fd uintptr) { bytes, failed = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return bytes, err == nil && failed == nil
}
