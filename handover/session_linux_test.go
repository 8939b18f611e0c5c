package handover

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// sockets returns a connected pair of Unix sockets.
func sockets(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	a, file, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	b = c.(*net.UnixConn)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// patient returns a context for calls that must not hang.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), tlstest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// session returns both sides of a hand-over.
func session(t testing.TB) (*Sender, *Receiver) {
	t.Helper()
	a, b := sockets(t)
	receivers := make(chan *Receiver, 1)
	go func() {
		r, err := NewReceiver(patient(t), b)
		if err != nil {
			t.Error(err)
		}
		receivers <- r
	}()
	s, err := NewSender(patient(t), a)
	r := <-receivers
	if err != nil || r == nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); r.Close() })
	return s, r
}

// inBackground calls f in a goroutine, and returns its error by a channel.
func inBackground(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// await returns the error of inBackground, and fails the test if it takes too long.
func await(t testing.TB, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(tlstest.Patience):
		t.Fatal("it hangs")
		return nil
	}
}

// wantEcho checks that bytes go from one end to the other, both ways.
func wantEcho(t testing.TB, a, b net.Conn) {
	t.Helper()
	for range 2 {
		if _, err := a.Write([]byte("whole")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 5)
		if err := b.SetReadDeadline(time.Now().Add(tlstest.Patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(b, got); err != nil || string(got) != "whole" {
			t.Fatalf("received %q, %v", got, err)
		}
		a, b = b, a
	}
}

// descriptors returns the number of open descriptors.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries) - 1 // the folder's own
}

// option returns the value of a socket's option.
func option(t testing.TB, conn any, level, name int) int {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var value int
	if controlErr := raw.Control(func(fd uintptr) {
		value, err = syscall.GetsockoptInt(int(fd), level, name)
	}); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	return value
}

// TestPlain: connections without TLS and listeners arrive with their data and their options, and the
// descriptors close on exec.
func TestPlain(t *testing.T) {
	pairs := map[string]func() (net.Conn, net.Conn){
		"TCP":  tlstest.Loopback,
		"Unix": func() (net.Conn, net.Conn) { return tlstest.Sockets("unix", filepath.Join(t.TempDir(), "socket")) },
	}
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			s, r := session(t)
			peer, conn := pair()
			defer peer.Close()
			tcp, isTCP := conn.(*net.TCPConn)
			if isTCP { // package net turns both on
				if err := errors.Join(tcp.SetNoDelay(false), tcp.SetKeepAlive(false)); err != nil {
					t.Fatal(err)
				}
			}
			sent := inBackground(func() error { return s.SendPlain(patient(t), conn, []byte("of mine")) })
			item, err := r.Receive(patient(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := await(t, sent); err != nil {
				t.Fatal(err)
			}
			defer item.Close()
			if item.Listener != nil || item.TLS || string(item.Data) != "of mine" {
				t.Errorf("received %+v", item)
			}
			if _, err := conn.Write([]byte("?")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a write to the old connection: %v", err)
			}
			wantEcho(t, peer, item.Conn)
			if isTCP && option(t, item.Conn, syscall.IPPROTO_TCP, syscall.TCP_NODELAY) != 0 {
				t.Error("TCP_NODELAY was set")
			}
			if isTCP && option(t, item.Conn, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) != 0 {
				t.Error("SO_KEEPALIVE was set")
			}
			wantCloseOnExec(t, item.Conn)
			if item.Conn.RemoteAddr().String() != peer.LocalAddr().String() {
				t.Errorf("the remote address is %v", item.Conn.RemoteAddr())
			}
			if got, want := s.Counts(), (Counts{Connections: 1}); got != want {
				t.Errorf("counts %+v", got)
			}
		})
	}
}

func wantCloseOnExec(t *testing.T, conn any) {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFD, 0)
		if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
			t.Errorf("flags %#x, %v", flags, errno)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// TestListeners: no connection is refused between two processes that accept.
func TestListeners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	for _, addr := range [][2]string{{"tcp", "127.0.0.1:0"}, {"unix", path}} {
		t.Run(addr[0], func(t *testing.T) {
			s, r := session(t)
			l, err := net.Listen(addr[0], addr[1])
			if err != nil {
				t.Fatal(err)
			}
			sent := inBackground(func() error { return s.SendListener(patient(t), l, []byte("name")) })
			item, err := r.Receive(patient(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := await(t, sent); err != nil {
				t.Fatal(err)
			}
			defer item.Close()
			if item.Conn != nil || string(item.Data) != "name" {
				t.Errorf("received %+v", item)
			}
			wantCloseOnExec(t, item.Listener)
			peer, err := net.Dial(addr[0], l.Addr().String()) // before the old one closes
			if err != nil {
				t.Fatal(err)
			}
			defer peer.Close()
			l.Close()
			conn, err := item.Listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			wantEcho(t, peer, conn)
			if other, err := net.Dial(addr[0], item.Listener.Addr().String()); err != nil {
				t.Error("after the old listener was closed:", err)
			} else {
				other.Close()
			}
		})
	}
}

// TestEnd: only Close of the Sender is a regular end.
func TestEnd(t *testing.T) {
	s, r := session(t)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := r.Receive(patient(t)); err != io.EOF {
			t.Errorf("after Close: %v", err)
		}
	}
	s, r = session(t)
	s.fail(errors.New("the process dies"))
	if _, err := r.Receive(patient(t)); err == nil || err == io.EOF {
		t.Errorf("after the end of the old process: %v", err)
	}
	s, r = session(t)
	r.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := s.SendListener(patient(t), l, nil); err == nil {
		t.Error("a listener was sent to a process that has gone")
	}
	if got, want := s.Counts(), (Counts{Stayed: 1}); got != want {
		t.Errorf("counts %+v", got)
	}
}

// TestHangs: a new process that stops at any point costs the old one no connection that it didn't
// have yet, and none is left half.
func TestHangs(t *testing.T) {
	short := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	t.Run("before its hello", func(t *testing.T) {
		a, _ := sockets(t)
		if _, err := NewSender(short(t), a); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	// stopping calls SendPlain with a context that is canceled when read returns.
	stopping := func(t *testing.T, s *Sender, conn net.Conn, read func()) error {
		ctx, cancel := context.WithCancel(patient(t))
		sent := inBackground(func() error { return s.SendPlain(ctx, conn, nil) })
		read()
		cancel()
		return await(t, sent)
	}
	t.Run("before the socket", func(t *testing.T) {
		s, p := toSender(t)
		peer, conn := tlstest.Loopback()
		defer peer.Close()
		err := stopping(t, s, conn, func() { p.read(headerLen) })
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrLost) {
			t.Error(err)
		}
		wantEcho(t, peer, conn)
		if b := p.read(headerLen); b[0] != msgKeep {
			t.Errorf("then message %d", b[0])
		}
		if got, want := s.Counts(), (Counts{Stayed: 1}); got != want {
			t.Errorf("counts %+v", got)
		}
	})
	t.Run("before the end", func(t *testing.T) {
		s, p := toSender(t)
		peer, conn := tlstest.Loopback()
		defer peer.Close()
		copied, err := conn.(*net.TCPConn).File() // that the new process has
		if err != nil {
			t.Fatal(err)
		}
		defer copied.Close()
		err = stopping(t, s, conn, func() {
			p.read(headerLen)
			p.write(replies(msgHave, 1))
			p.read(headerLen)
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrLost) {
			t.Error(err)
		}
		if err := peer.SetReadDeadline(time.Now().Add(tlstest.Patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := peer.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the peer reads %d bytes, %v: half a connection", n, err)
		}
		if got, want := s.Counts(), (Counts{Lost: 1}); got != want {
			t.Errorf("counts %+v", got)
		}
	})
	t.Run("without reading", func(t *testing.T) { // until the socket's buffer is full
		s, _ := toSender(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for range 3 {
			if err := s.SendListener(short(t), l, make([]byte, MaxData)); err == nil {
				t.Error("it was sent")
			}
		}
		if got, want := s.Counts(), (Counts{Stayed: 3}); got != want {
			t.Errorf("counts %+v", got)
		}
	})
	t.Run("an old process", func(t *testing.T) {
		r, p := toReceiver(t)
		if _, err := r.Receive(short(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		p.write(header{kind: msgDone}.append(nil)[:3]) // Receive goes on, but not within a message
		if _, err := r.Receive(short(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := r.Receive(patient(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a message that was cut: %v", err)
		}
	})
}

// TestLimits: a new process without descriptors takes nothing, and loses nothing.
func TestLimits(t *testing.T) {
	s, r := session(t)
	peer, conn := tlstest.Loopback()
	defer peer.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(patient(t))
	items := make(chan *Item, 2)
	received := inBackground(func() error {
		for {
			item, err := r.Receive(ctx)
			if err != nil {
				return err
			}
			items <- item
		}
	})
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	next, err := syscall.Dup(0) // the lowest number that is free
	if err != nil {
		t.Fatal(err)
	}
	syscall.Close(next)
	for free := range uint64(2) { // FileConn needs a second one
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(next) + free, Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
		if err := s.SendPlain(ctx, conn, nil); !errors.Is(err, ErrFull) {
			t.Errorf("%d descriptors: SendPlain: %v", free, err)
		}
		if err := s.SendListener(ctx, l, nil); !errors.Is(err, ErrFull) {
			t.Errorf("%d descriptors: SendListener: %v", free, err)
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	wantEcho(t, peer, conn)
	if err := s.SendPlain(ctx, conn, nil); err != nil {
		t.Fatal(err)
	}
	item := <-items
	defer item.Close()
	wantEcho(t, peer, item.Conn)
	if got, want := s.Counts(), (Counts{Connections: 1, Stayed: 4}); got != want {
		t.Errorf("counts %+v", got)
	}
	cancel()
	if err := await(t, received); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestClosed: a connection or a listener that is closed concerns no other one.
func TestClosed(t *testing.T) {
	s, r := session(t)
	peer, conn := tlstest.Loopback()
	defer peer.Close()
	_, closed := tlstest.Loopback()
	closed.Close()
	if err := s.SendPlain(patient(t), closed, nil); !errors.Is(err, net.ErrClosed) || errors.Is(err, ErrLost) {
		t.Errorf("SendPlain: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := s.SendListener(patient(t), l, nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("SendListener: %v", err)
	}
	sent := inBackground(func() error { return s.SendPlain(patient(t), conn, nil) })
	item, err := r.Receive(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	defer item.Close()
	if err := await(t, sent); err != nil {
		t.Error(err)
	}
	wantEcho(t, peer, item.Conn)
}

// TestUnfit: connections that can't travel are refused before anything is sent.
func TestUnfit(t *testing.T) {
	s, p := toSender(t)
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	peer, conn := tlstest.Loopback()
	defer peer.Close()
	defer conn.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, err := range map[string]error{
		"a pipe":                 s.SendPlain(patient(t), a, nil),
		"a wrapped connection":   s.SendPlain(patient(t), struct{ *net.TCPConn }{conn.(*net.TCPConn)}, nil),
		"too much data":          s.SendPlain(patient(t), conn, make([]byte, MaxData+1)),
		"a wrapped listener":     s.SendListener(patient(t), struct{ *net.TCPListener }{l.(*net.TCPListener)}, nil),
		"a listener's long data": s.SendListener(patient(t), l, make([]byte, MaxData+1)),
	} {
		if !errors.Is(err, ErrUnfit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Close()
	if b := p.read(headerLen); b[0] != msgDone {
		t.Errorf("message %d was sent", b[0])
	}
	packets, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(packets[1])
	file := os.NewFile(uintptr(packets[0]), "")
	defer file.Close()
	socket, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewSender(patient(t), socket.(*net.UnixConn)); !errors.Is(err, ErrUnfit) {
		t.Errorf("NewSender on a socket of packets: %v", err)
	}
}
