package handover

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// checkPeer checks that conn is a stream socket whose other end belongs to a process of this
// process's user.
func checkPeer(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return errorf("%w", err)
	}
	var kind int
	var peer *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		if kind, failed = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TYPE); failed == nil {
			peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		}
	}); err != nil || failed != nil {
		return errorf("%w", errors.Join(err, failed))
	}
	if kind != syscall.SOCK_STREAM {
		return errorf("%w: the socket isn't a stream", ErrUnfit)
	}
	if own := os.Geteuid(); int64(peer.Uid) != int64(own) {
		return errorf("%w: %d, and this one as %d", ErrUser, peer.Uid, own)
	}
	return nil
}

// sendDescriptor writes b and the descriptor of a socket to conn. It returns the number of bytes
// that it has written. If unsent isn't nil, it has written nothing, because of the socket: it is
// closed, or the user has too many descriptors on the way.
func sendDescriptor(conn *net.UnixConn, b []byte, socket syscall.RawConn) (n int, unsent, err error) {
	// The descriptor is used as it is: a copy could exceed this process's limit.
	unsent = socket.Control(func(fd uintptr) {
		n, _, err = conn.WriteMsgUnix(b, syscall.UnixRights(int(fd)), nil)
	})
	if n == 0 && errors.Is(err, syscall.ETOOMANYREFS) {
		unsent, err = err, nil
	}
	return n, unsent, err
}

// A received descriptor is one that came with a header.
type received struct {
	fd   int  // -1 if there is none
	lost bool // there was one, and this process had no descriptor left
}

func (r *received) close() {
	if r.fd >= 0 {
		_ = syscall.Close(r.fd)
		r.fd = -1
	}
}

// readHeaderBytes fills b from conn. It returns the descriptor that came with these bytes, if any, and
// the number of bytes. It keeps no descriptor open if it returns an error.
func readHeaderBytes(conn *net.UnixConn, b []byte) (got received, n int, err error) {
	got.fd = -1
	defer func() {
		if err != nil {
			got.close()
		}
	}()
	control := make([]byte, syscall.CmsgSpace(4*4)) // more than one descriptor, to close those that are too many
	for n < len(b) {
		m, controlLen, flags, _, err := conn.ReadMsgUnix(b[n:], control)
		if err != nil {
			return got, n, err
		}
		n += m
		if err := got.add(control[:controlLen], flags&syscall.MSG_CTRUNC != 0); err != nil {
			return got, n, err
		}
		if m == 0 {
			if n == 0 {
				return got, n, io.EOF
			}
			return got, n, io.ErrUnexpectedEOF
		}
	}
	return got, n, nil
}

// add adds the descriptor of a control message. The kernel cuts control messages, and sets
// truncated, if the process has no descriptor left, and if there is more than one descriptor.
func (r *received) add(control []byte, truncated bool) error {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return errorf("%w: a control message: %w", ErrFormat, err)
	}
	for _, m := range messages {
		fds, rightsErr := syscall.ParseUnixRights(&m)
		if rightsErr != nil {
			err = errorf("%w: a control message: %w", ErrFormat, rightsErr)
			continue
		}
		for _, fd := range fds {
			if r.fd >= 0 {
				_ = syscall.Close(fd)
				err = errorf("%w: more than one descriptor in a message", ErrFormat)
				continue
			}
			r.fd = fd
		}
	}
	if err == nil && truncated {
		if r.fd >= 0 {
			return errorf("%w: more than one descriptor in a message", ErrFormat)
		}
		r.lost = true
	}
	return err
}

// connection makes a connection of the descriptor, which it takes.
func (r *received) connection() (net.Conn, error) {
	defer r.close()
	kind, err := r.check(false)
	if err != nil {
		return nil, err
	}
	// package net sets the options of every TCP connection that it makes. This one keeps those that the
	// old process has set.
	var kept tcpOptions
	if kind != syscall.AF_UNIX {
		if kept, err = r.tcpOptions(); err != nil {
			return nil, err
		}
	}
	file := os.NewFile(uintptr(r.fd), "handover")
	r.fd = -1
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, nil
	}
	raw, err := tcp.SyscallConn()
	if err == nil {
		controlErr := raw.Control(func(fd uintptr) { err = kept.set(int(fd)) })
		err = errors.Join(err, controlErr)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// listener makes a listener of the descriptor, which it takes.
func (r *received) listener() (net.Listener, error) {
	defer r.close()
	if _, err := r.check(true); err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(r.fd), "handover")
	r.fd = -1
	defer file.Close()
	return net.FileListener(file)
}

// ipprotoMPTCP is the protocol of package net's listeners if the kernel has Multipath TCP.
const ipprotoMPTCP = 262

// errNoSocket is the reason if a descriptor isn't a stream socket of TCP or a Unix socket, in the right
// state.
var errNoSocket = errors.New("not such a socket")

// check checks that the descriptor is a listener, or a connection, and returns its address family.
func (r *received) check(listens bool) (domain int, err error) {
	var values [4]int
	for i, option := range []int{syscall.SO_TYPE, syscall.SO_DOMAIN, syscall.SO_PROTOCOL, syscall.SO_ACCEPTCONN} {
		value, err := syscall.GetsockoptInt(r.fd, syscall.SOL_SOCKET, option)
		if errors.Is(err, syscall.ENOTSOCK) {
			return 0, errNoSocket
		}
		if err != nil {
			return 0, os.NewSyscallError("getsockopt", err)
		}
		values[i] = value
	}
	domain = values[1]
	tcp := (domain == syscall.AF_INET || domain == syscall.AF_INET6) &&
		(values[2] == syscall.IPPROTO_TCP || values[2] == ipprotoMPTCP)
	if values[0] != syscall.SOCK_STREAM || !tcp && domain != syscall.AF_UNIX || (values[3] != 0) != listens {
		return 0, errNoSocket
	}
	if !listens {
		if _, err := syscall.Getpeername(r.fd); err != nil { // not connected, or not any more
			return 0, errNoSocket
		}
	}
	return domain, nil
}

// tcpOptions are the values of the options that package net sets.
type tcpOptions [len(tcpOptionNames)]int

var tcpOptionNames = [...]struct{ level, option int }{
	{syscall.IPPROTO_TCP, syscall.TCP_NODELAY},
	{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE},
	{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL},
	{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT},
	{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE},
}

func (r *received) tcpOptions() (values tcpOptions, err error) {
	for i, name := range tcpOptionNames {
		values[i], err = syscall.GetsockoptInt(r.fd, name.level, name.option)
		if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOPROTOOPT) {
			values[i] = -1 // Multipath TCP, in some kernels: package net can't set it either
		} else if err != nil {
			return values, os.NewSyscallError("getsockopt", err)
		}
	}
	return values, nil
}

func (v *tcpOptions) set(fd int) error {
	for i, name := range tcpOptionNames {
		if v[i] < 0 {
			continue
		}
		if err := syscall.SetsockoptInt(fd, name.level, name.option, v[i]); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	return nil
}

// noDescriptorLeft reports whether err is due to a limit of the process or the system.
func noDescriptorLeft(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM) ||
		errors.Is(err, syscall.ENOBUFS)
}

// end closes a connection for all processes that have its socket.
func end(conn net.Conn) {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
		}
	}
	_ = conn.Close()
}

// pair returns the two ends of a new pair of Unix sockets.
func pair() (conn *net.UnixConn, other *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	file := os.NewFile(uintptr(fds[0]), "handover")
	other = os.NewFile(uintptr(fds[1]), "handover")
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		other.Close()
		return nil, nil, err
	}
	return c.(*net.UnixConn), other, nil
}

// closeOnExec keeps a descriptor from the programs that this process starts.
func closeOnExec(fd int) { syscall.CloseOnExec(fd) }
