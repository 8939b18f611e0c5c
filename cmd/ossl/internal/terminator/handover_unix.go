//go:build unix

package terminator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// handPatience is the time in which the former process must write its ticket keys.
const handPatience = 10 * time.Second

// HandOver starts a command that takes over the listening sockets, and waits until it serves or ctx
// is done. Then Drain should be called. If HandOver returns an error, the command's process has
// exited, and the server goes on. It sets the command's ExtraFiles, and adds to its Env.
func (s *Server) HandOver(ctx context.Context, cmd *exec.Cmd) error {
	if s.draining.Load() {
		return errors.New("the server is ending")
	}
	state := handoverState{From: os.Getpid(), Domain: s.domain}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd.ExtraFiles = nil
	hand := func(f *os.File) (descriptor int) {
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		return firstDescriptor + len(cmd.ExtraFiles) - 1
	}
	state.Ready = hand(theirs)
	defer func() {
		for _, f := range cmd.ExtraFiles {
			_ = f.Close()
		}
	}()
	for _, b := range s.sockets {
		f, err := duplicate(b.listener)
		if err != nil {
			return err
		}
		state.Sockets = append(state.Sockets, handedSocket{Descriptor: hand(f), Place: b.place})
	}
	if own := s.ownKeys.Load(); own != nil {
		theirs, end, err := own.handKeys()
		if err != nil {
			return err
		}
		defer end()
		state.Keys, state.KeysFor = hand(theirs), own.settings
	}
	var ours *net.UnixConn
	if !s.current.Load().plan.leaves {
		var theirs *os.File
		if ours, theirs, err = movesPair(); err != nil {
			return err
		}
		defer func() {
			if ours != nil {
				_ = ours.Close()
			}
		}()
		state.Moves = hand(theirs)
	}
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	cmd.Env = append(cmd.Environ(), handoverVariable+"="+string(text))
	if err := cmd.Start(); err != nil {
		return err
	}
	for _, f := range cmd.ExtraFiles { // so that the pipes are closed when the process exits
		_ = f.Close()
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	version, err := awaitReady(ctx, ready)
	if err != nil {
		_ = cmd.Process.Kill()
		if exit := <-ended; !errors.Is(err, context.Cause(ctx)) {
			return fmt.Errorf("the new process ended before it served: %w", exit)
		}
		return fmt.Errorf("the new process did not serve in time: %w", err)
	}
	for _, b := range s.sockets {
		if l, ok := b.listener.(*net.UnixListener); ok {
			l.SetUnlinkOnClose(false)
		}
	}
	if version == movesVersion && ours != nil {
		s.mover = newMover(ours, s.log)
		ours = nil
	}
	s.handed.Store(true)
	return nil
}

// awaitReady waits for the byte that Ready writes, and returns it. If ctx is done first, it returns ctx's
// error.
func awaitReady(ctx context.Context, ready *os.File) (byte, error) {
	undo := context.AfterFunc(ctx, func() { _ = ready.Close() })
	defer undo()
	var version [1]byte
	if _, err := ready.Read(version[:]); err != nil {
		if ended := context.Cause(ctx); ended != nil {
			return 0, ended
		}
		return 0, err
	}
	return version[0], nil
}

// duplicate returns another descriptor of a listener or a connection. The socket stays in nonblocking
// mode. The listener's File would make it blocking, for this process too.
func duplicate(socket any) (*os.File, error) {
	conn, ok := socket.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a %T can't be handed over", socket)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var copied int
	var failed error
	if err := raw.Control(func(fd uintptr) { copied, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, os.NewSyscallError("fcntl", failed)
	}
	return os.NewFile(uintptr(copied), "socket"), nil
}

// inheritListener returns the listener of a file descriptor. A Unix socket's listener removes the
// socket's path when it is closed, as the one that made it would have done, unless it was systemd.
func inheritListener(fd uintptr, place string) (net.Listener, error) {
	f := inheritFile(fd, place)
	defer f.Close()
	l, err := net.FileListener(f)
	if u, ok := l.(*net.UnixListener); ok && !strings.HasSuffix(place, " "+fromSystemd) {
		u.SetUnlinkOnClose(true)
	}
	return l, err
}

// inheritTicketKeys reads the keys from a pipe, which the parent has filled before it waits.
func inheritTicketKeys(fd uintptr) ([]agedKey, error) {
	if err := syscall.SetNonblock(int(fd), true); err != nil { // for the deadline
		return nil, os.NewSyscallError("fcntl", err)
	}
	pipe := inheritFile(fd, "ticket keys")
	defer pipe.Close()
	if err := pipe.SetReadDeadline(time.Now().Add(handPatience)); err != nil {
		return nil, err
	}
	return readTicketKeys(pipe, time.Now())
}

// inheritFile returns the file of a descriptor, which later processes don't inherit.
func inheritFile(fd uintptr, name string) *os.File {
	keepFromChildren(int(fd))
	return os.NewFile(fd, name)
}

// keepFromChildren keeps a descriptor from programs that are executed, unless it is 0.
func keepFromChildren(fd int) {
	if fd != 0 {
		syscall.CloseOnExec(fd)
	}
}
