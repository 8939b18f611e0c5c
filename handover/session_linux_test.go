package handover

import (
	"context"
	"encoding/binary"
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

// patient returns a context that ends when the test has hung.
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

// TestVersions: two releases use the highest version that both have, or refuse one another.
func TestVersions(t *testing.T) {
	for _, test := range []struct{ lowest, highest, theirLowest, theirHighest, want uint16 }{
		{1, 1, 1, 1, 1}, {1, 2, 1, 1, 1}, {1, 1, 1, 2, 1}, {2, 4, 3, 9, 4}, {3, 9, 2, 4, 4}, {4, 4, 4, 9, 4},
		{1, 1, 2, 2, 0}, {2, 2, 1, 1, 0}, {1, 3, 4, 9, 0}, {4, 9, 1, 3, 0},
		{1, 1, 0, 0, 0}, {1, 1, 2, 1, 0}, // not a range
	} {
		hello := appendHello(nil, oldProcess, test.theirLowest, test.theirHighest)
		got, err := agree(hello, oldProcess, test.lowest, test.highest)
		if got != test.want || (err == nil) != (test.want != 0) || err != nil && !errors.Is(err, ErrVersion) {
			t.Errorf("%+v: %d, %v", test, got, err)
		}
	}
	hellos := map[string]struct {
		hello []byte
		want  error
	}{
		"later":          {appendHello(nil, newProcess, 2, 3), ErrVersion},
		"its own role":   {appendHello(nil, oldProcess, 1, 1), ErrFormat},
		"something else": {[]byte("GET / HTTP/1.1\r\n\r\n"), ErrFormat},
		"the end":        {nil, io.EOF},
		"cut":            {appendHello(nil, newProcess, 1, 1)[:7], io.ErrUnexpectedEOF},
	}
	for name, test := range hellos {
		t.Run(name, func(t *testing.T) {
			a, b := sockets(t)
			if _, err := b.Write(test.hello); err != nil {
				t.Fatal(err)
			}
			if err := b.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if _, err := NewSender(patient(t), a); !errors.Is(err, test.want) {
				t.Errorf("NewSender: %v", err)
			}
		})
	}
}

// A peerProcess is the other side of a hand-over, made of bytes.
type peerProcess struct {
	t testing.TB
	*net.UnixConn
}

// toSender returns a Sender and its new process, toReceiver a Receiver and its old process.
func toSender(t testing.TB) (*Sender, peerProcess) {
	t.Helper()
	a, b := sockets(t)
	p := peerProcess{t, b}
	p.write(appendHello(nil, newProcess, 1, 1))
	s, err := NewSender(patient(t), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	p.read(helloLen)
	return s, p
}

func toReceiver(t testing.TB) (*Receiver, peerProcess) {
	t.Helper()
	a, b := sockets(t)
	p := peerProcess{t, b}
	p.write(appendHello(nil, oldProcess, 1, 1))
	r, err := NewReceiver(patient(t), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	p.read(helloLen)
	return r, p
}

func (p peerProcess) write(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

func (p peerProcess) read(n int) []byte {
	p.t.Helper()
	b := make([]byte, n)
	if err := p.SetReadDeadline(time.Now().Add(tlstest.Patience)); err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.ReadFull(p, b); err != nil {
		p.t.Fatal(err)
	}
	return b
}

// send sends a message, with the descriptors of files.
func (p peerProcess) send(h header, body []byte, files ...int) {
	p.t.Helper()
	h.length = uint32(len(body))
	if len(files) > 0 {
		h.flags |= flagDescriptor
		if _, _, err := p.WriteMsgUnix(h.append(nil), syscall.UnixRights(files...), nil); err != nil {
			p.t.Fatal(err)
		}
		p.write(body)
		return
	}
	p.write(append(h.append(nil), body...))
}

// reply reads a reply to the Receiver's peer. For msgRefused it returns the reason, too.
func (p peerProcess) reply() (kind, reason byte) {
	p.t.Helper()
	b := p.read(headerLen)
	if n := binary.BigEndian.Uint32(b[8:]); n > 0 {
		reason = p.read(int(n))[0]
	}
	return b[0], reason
}

// fd returns the descriptor of a connection, a listener or a file, which is closed with the test.
func fd(t testing.TB, v syscall.Conn, err error) int {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.(io.Closer).Close() })
	raw, err := v.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := raw.Control(func(fd uintptr) { n = int(fd) }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDescriptors: a descriptor of the wrong kind is refused, a message with the wrong number of them
// ends the hand-over, and none is left open.
func TestDescriptors(t *testing.T) {
	client, server := tlstest.Loopback()
	clientEnd := fd(t, client.(*net.TCPConn), nil)
	connected := fd(t, server.(*net.TCPConn), nil)
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	listens := fd(t, l, err)
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	datagrams := fd(t, udp, err)
	null, err := os.Open(os.DevNull)
	file := fd(t, null, err)
	pr, pw, err := os.Pipe()
	pipe := fd(t, pr, err)
	defer pw.Close()
	packets, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(packets[0])
	defer syscall.Close(packets[1])
	alone, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(alone)

	const broken, taken = 0, msgTaken
	tests := []struct {
		name  string
		kind  byte
		files []int
		want  byte
	}{
		{"a connection", msgSocket, []int{connected}, msgHave},
		{"a listener for a connection", msgSocket, []int{listens}, msgRefused},
		{"a datagram socket", msgSocket, []int{datagrams}, msgRefused},
		{"a file", msgSocket, []int{file}, msgRefused},
		{"a pipe", msgSocket, []int{pipe}, msgRefused},
		{"a socket of packets", msgSocket, []int{packets[0]}, msgRefused},
		{"a socket without a peer", msgSocket, []int{alone}, msgRefused},
		{"a listener", msgListener, []int{listens}, taken},
		{"a connection for a listener", msgListener, []int{connected}, msgRefused},
		{"a socket that doesn't listen", msgListener, []int{alone}, msgRefused},
		{"a file for a listener", msgListener, []int{file}, msgRefused},
		{"two connections", msgSocket, []int{connected, clientEnd}, broken},
		{"three connections", msgSocket, []int{connected, clientEnd, connected}, broken},
		{"no descriptor", msgSocket, nil, broken},
		{"a descriptor with a message that needs none", msgDone, []int{connected}, broken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, p := toReceiver(t)
			before := descriptors(t)
			p.send(header{kind: test.kind, id: 7}, nil, test.files...)
			received := inBackground(func() error {
				for {
					item, err := r.Receive(patient(t))
					if err != nil {
						return err
					}
					item.Close()
				}
			})
			if test.want != broken {
				if kind, reason := p.reply(); kind != test.want || kind == msgRefused && reason != refusedUnfit {
					t.Errorf("reply %d, %d", kind, reason)
				}
				p.send(header{kind: msgDone}, nil)
			}
			err := await(t, received)
			if (test.want == broken) != errors.Is(err, ErrFormat) || test.want != broken && err != io.EOF {
				t.Errorf("Receive: %v", err)
			}
			if after := descriptors(t); after != before-1 { // the Receiver's own
				t.Errorf("%d descriptors before, %d after", before, after)
			}
		})
	}
	wantEcho(t, client, server)
}

// TestFormat: messages that a process must not send end the hand-over, and unknown ones that may be
// skipped are skipped.
func TestFormat(t *testing.T) {
	_, server := tlstest.Loopback()
	conn := fd(t, server.(*net.TCPConn), nil)
	state := func(n uint32, rest int) []byte {
		return append(binary.BigEndian.AppendUint32(nil, n), make([]byte, rest)...)
	}
	tests := map[string]func(p peerProcess){
		"an unknown kind":                func(p peerProcess) { p.send(header{kind: 99}, []byte("?")) },
		"a reply":                        func(p peerProcess) { p.send(header{kind: msgHave}, nil) },
		"an unknown flag":                func(p peerProcess) { p.send(header{kind: msgDone, flags: 128}, nil) },
		"a keep with a body":             func(p peerProcess) { p.send(header{kind: msgKeep}, []byte("?")) },
		"a state without a socket":       func(p peerProcess) { p.send(header{kind: msgState, id: 1}, state(2, 2)) },
		"a plain one without a socket":   func(p peerProcess) { p.send(header{kind: msgPlain, id: 1}, nil) },
		"a state that is too short":      func(p peerProcess) { p.send(header{kind: msgState, id: 1}, []byte{0, 0, 0}) },
		"a body that is too long":        func(p peerProcess) { p.write(header{kind: msgPlain, length: MaxData + 1}.append(nil)) },
		"a certificate that is too long": func(p peerProcess) { p.write(header{kind: msgCertificate, length: maxBody}.append(nil)) },
		"an unknown kind that is too long": func(p peerProcess) {
			p.write(header{kind: 99, flags: flagOptional, length: maxBody + 1}.append(nil))
		},
		"a state with a wrong length": func(p peerProcess) {
			p.send(header{kind: msgSocket, id: 1}, nil, conn)
			p.send(header{kind: msgState, id: 1}, state(3, 2))
		},
		"one ID for two": func(p peerProcess) {
			p.send(header{kind: msgSocket, id: 1}, nil, conn)
			p.send(header{kind: msgSocket, id: 1}, nil, conn)
		},
		"too many sockets": func(p peerProcess) {
			for id := range uint32(maxOffers + 1) {
				p.send(header{kind: msgSocket, id: id}, nil, conn)
			}
		},
	}
	for name, bad := range tests {
		t.Run(name, func(t *testing.T) {
			r, p := toReceiver(t)
			before := descriptors(t)
			p.send(header{kind: 99, flags: flagOptional}, []byte("to be skipped"))
			p.send(header{kind: 99, flags: flagOptional}, []byte("with a descriptor"), conn)
			p.send(header{kind: msgKeep, id: 1}, nil) // of a socket that was refused
			bad(p)
			if _, err := r.Receive(patient(t)); !errors.Is(err, ErrFormat) {
				t.Errorf("Receive: %v", err)
			}
			if after := descriptors(t); after != before-1 {
				t.Errorf("%d descriptors before, %d after", before, after)
			}
		})
	}
	replies := map[string]func(p peerProcess){
		"an unknown kind":      func(p peerProcess) { p.send(header{kind: 99, id: 1}, nil) },
		"a message":            func(p peerProcess) { p.send(header{kind: msgKeep, id: 1}, nil) },
		"taken before it is":   func(p peerProcess) { p.send(header{kind: msgTaken, id: 1}, nil) },
		"a long reason":        func(p peerProcess) { p.send(header{kind: msgRefused, id: 1}, []byte("12")) },
		"three replies to one": func(p peerProcess) { p.write(replies(msgHave, 1, msgHave, 1, msgHave, 1)) },
	}
	for name, bad := range replies {
		t.Run("reply: "+name, func(t *testing.T) {
			s, p := toSender(t)
			peer, conn := tlstest.Loopback()
			defer peer.Close()
			defer conn.Close()
			p.send(header{kind: 99, flags: flagOptional}, []byte("to be skipped"))
			p.send(header{kind: msgHave, id: 1000}, nil) // of a call that has given up
			sent := inBackground(func() error { return s.SendPlain(patient(t), conn, nil) })
			p.read(headerLen)
			bad(p)
			if err := await(t, sent); !errors.Is(err, ErrFormat) {
				t.Errorf("Send: %v", err)
			} else if !errors.Is(err, ErrLost) {
				wantEcho(t, peer, conn)
			}
		})
	}
}

func replies(pairs ...byte) (b []byte) {
	for i := 0; i < len(pairs); i += 2 {
		b = header{kind: pairs[i], id: uint32(pairs[i+1])}.append(b)
	}
	return b
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
	// stopping calls SendPlain with a context that ends when new has read what it needs.
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
