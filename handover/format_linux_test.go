package handover

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

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
// stops the hand-over, and none is left open.
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
			if after := descriptors(t); after > before-1 { // the Receiver's own
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
			if after := descriptors(t); after > before-1 {
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
