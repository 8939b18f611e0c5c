package handover

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// envDescriptor names the variable that has the number of the descriptor that Start gives to the new
// process.
const envDescriptor = "OSSL_HANDOVER_FD"

// Start starts the program of cmd, as cmd.Start does, with one end of a pair of sockets, which
// [Inherited] returns there. It returns the other end, for [NewSender].
//
// Start adds to cmd.ExtraFiles and to cmd.Env. The caller calls cmd.Wait. If the new process dies, the
// Sender fails, and this process goes on with the connections that it has.
func Start(cmd *exec.Cmd) (*net.UnixConn, error) {
	conn, other, err := pair()
	if err != nil {
		return nil, errorf("%w", err)
	}
	defer other.Close()
	cmd.Env = append(cmd.Environ(), envDescriptor+"="+strconv.Itoa(3+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, other)
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, errorf("%w", err)
	}
	return conn, nil
}

// Inherited returns the socket to the old process if [Start] has started this one, and nil if not. It
// returns the socket once. Call it before this process starts others, which would inherit the socket
// too.
func Inherited() (*net.UnixConn, error) {
	value, ok := os.LookupEnv(envDescriptor)
	if !ok {
		return nil, nil
	}
	if err := os.Unsetenv(envDescriptor); err != nil {
		return nil, errorf("%w", err)
	}
	fd, err := strconv.ParseUint(value, 10, 31)
	if err != nil || fd < 3 {
		return nil, errorf("%s is %q, which is no descriptor of a socket", envDescriptor, value)
	}
	file := os.NewFile(uintptr(fd), "handover")
	if file == nil {
		return nil, errorf("%s is %q, which is no descriptor", envDescriptor, value)
	}
	defer file.Close() // FileConn copies the descriptor
	closeOnExec(int(fd))
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, errorf("%s is %q: %w", envDescriptor, value, err)
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, errorf("%s is %q, which is no Unix socket", envDescriptor, value)
	}
	return unix, nil
}

// Listen listens on a Unix socket for new processes, which dial to it with net.DialUnix. It is for old
// processes that don't start the new one. Others than this process's user can't connect. A socket that
// a process has left behind is replaced.
//
// The new process needs the socket for its own successor: send it with [Sender.SendListener], as the
// last listener.
func Listen(path string) (*net.UnixListener, error) {
	addr := &net.UnixAddr{Name: path, Net: "unix"}
	l, err := net.ListenUnix("unix", addr)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(addr) {
		if err := os.Remove(path); err != nil {
			return nil, errorf("%w", err)
		}
		l, err = net.ListenUnix("unix", addr)
	}
	if err != nil {
		return nil, errorf("%w", err)
	}
	// A process of another user that connects before this is refused by NewSender.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, errorf("%w", err)
	}
	return l, nil
}

// abandoned reports whether nobody listens on a socket.
func abandoned(addr *net.UnixAddr) bool {
	conn, err := net.DialUnix("unix", nil, addr)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
