//go:build unix

package terminator

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// movesPair returns both sides of a Unix socket: this process's, and that for the process that replaces it.
func movesPair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "connections")
	if ours, err = inheritMoves(uintptr(fds[0])); err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// inheritMoves returns the connection of a descriptor.
func inheritMoves(fd uintptr) (*net.UnixConn, error) {
	conn, err := connOf(int(fd))
	if err != nil {
		return nil, err
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, fmt.Errorf("a socket of %s is not one for connections", conn.LocalAddr().Network())
	}
	return socket, nil
}

// connOf returns the connection of a descriptor, which it closes.
func connOf(fd int) (net.Conn, error) {
	f := inheritFile(uintptr(fd), "connection")
	defer f.Close()
	return net.FileConn(f)
}

// rights returns the control message that gives descriptors to another process.
func rights(fds []int) []byte {
	if len(fds) == 0 {
		return nil
	}
	return unix.UnixRights(fds...)
}

// readRights reads bytes, and the descriptors that come with them. Those for which this process has no
// place are missing.
func readRights(conn *net.UnixConn, b []byte) (n int, fds []int, err error) {
	control := make([]byte, unix.CmsgSpace(2*4))
	n, controls, _, _, err := conn.ReadMsgUnix(b, control)
	if err != nil {
		return 0, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:controls])
	for _, message := range messages {
		given, parseErr := unix.ParseUnixRights(&message)
		fds = append(fds, given...)
		err = errors.Join(err, parseErr)
	}
	return n, fds, err
}

// closeAll closes descriptors.
func closeAll(fds []int) {
	for _, fd := range fds {
		_ = syscall.Close(fd)
	}
}
