//go:build cgo || ossl_nocgo

package handover

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/connstate"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/stdtls"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// established returns a connection of ossl's on a socket, and its crypto/tls peer.
func established(t testing.TB, ctx *ossl.Context, edits ...func(*tls.Config)) (conn *ossl.Conn, peer *tls.Conn) {
	t.Helper()
	if ossltest.RecordsByLibssl() {
		t.Skip("OSSL_RECORDS=libssl: libssl has the records")
	}
	a, b := tlstest.Loopback()
	conn, peer = ctx.Server(b), tls.Client(a, tlstest.ClientConfig(edits...))
	t.Cleanup(func() { a.Close(); b.Close() })
	done := inBackground(conn.Handshake)
	if err := peer.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	return conn, peer
}

// sent sends a connection, and returns the item that arrives.
func sent(t testing.TB, s *Sender, r *Receiver, conn *ossl.Conn, data []byte) *Item {
	t.Helper()
	done := inBackground(func() error { return s.Send(patient(t), conn, data) })
	item, err := r.Receive(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { item.Close() })
	return item
}

// wantEnd checks that a peer sees its connection closed, without close_notify.
func wantEnd(t testing.TB, peer net.Conn) {
	t.Helper()
	if err := peer.SetReadDeadline(time.Now().Add(tlstest.Patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := peer.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) &&
		!errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the peer reads %d bytes, %v", n, err)
	}
}

// TestSendCertificates: a certificate that many connections have travels once.
func TestSendCertificates(t *testing.T) {
	ctx := ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
	}))
	s, r := session(t)
	for i, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048, tlstest.P256, tlstest.RSA2048} {
		conn, peer := established(t, ctx, func(c *tls.Config) {
			c.Certificates = []tls.Certificate{tlstest.ClientCert(kind)}
		})
		before := conn.ConnectionState()
		item := sent(t, s, r, conn, []byte{byte(i)})
		if core, _, err := connstate.Split(item.state); err != nil || len(core) > 500 {
			t.Errorf("the state has %d bytes without the certificates, %v", len(core), err)
		}
		next, err := item.Attach(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wantEcho(t, peer, next)
		if err := tlstest.SameState(before, next.ConnectionState()); err != nil {
			t.Error(err)
		}
		if len(item.Data) != 1 || item.Data[0] != byte(i) || !item.TLS {
			t.Errorf("item %d: %v", i, item.Data)
		}
		// The authority's certificate, each client's and, from Go 1.27 on, the server's.
		if want := min(2+i, 3) + len(stdtls.LocalCertificate(&before)); len(r.certs.order) != want {
			t.Errorf("%d certificates have travelled, not %d", len(r.certs.order), want)
		}
		if _, err := item.Attach(ctx); !errors.Is(err, ErrUnfit) {
			t.Errorf("a second Attach: %v", err)
		}
	}
}

// TestSendClients: clients move as servers do.
func TestSendClients(t *testing.T) {
	if ossltest.RecordsByLibssl() {
		t.Skip("OSSL_RECORDS=libssl: libssl has the records")
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			ctx := ossltest.NewContext(t, tlstest.ClientConfig(tlstest.Only(version)))
			a, b := tlstest.Loopback()
			conn, peer := ctx.Client(a, ""), tls.Server(b, tlstest.ServerConfig())
			defer peer.Close()
			tlstest.Shake(t, conn, peer)
			before := conn.ConnectionState()
			s, r := session(t)
			next, err := sent(t, s, r, conn, nil).Attach(ctx)
			if err != nil {
				t.Fatal(err)
			}
			wantEcho(t, next, peer)
			if err := tlstest.SameState(before, next.ConnectionState()); err != nil {
				t.Error(err)
			}
			if err := next.VerifyHostname(tlstest.ServerName); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCerts: both tables forget the same certificates, and hold all of a connection.
func TestCerts(t *testing.T) {
	var c certs
	certificate := func(i, size int) []byte { return binary.BigEndian.AppendUint32(make([]byte, size), uint32(i)) }
	for i := range 3 * maxCertificates {
		chain := [][]byte{certificate(i, 10), certificate(i+maxCertificates-1, 1500), certificate(7, 1000)}
		for der, sum, found := c.missing(chain); found; der, sum, found = c.missing(chain) {
			c.add(sum, der)
		}
		if len(c.order) != len(c.der) || len(c.order) > maxCertificates || c.size > maxCertsSize {
			t.Fatalf("%d, %d certificates, %d bytes", len(c.order), len(c.der), c.size)
		}
	}
	size := 0
	for _, der := range c.der {
		size += len(der)
	}
	if size != c.size {
		t.Errorf("%d bytes, not %d", c.size, size)
	}
}

// TestSendBlocked: a connection whose Write waits for its peer stays until the peer reads.
func TestSendBlocked(t *testing.T) {
	ctx := ossltest.NewContext(t, tlstest.ServerConfig())
	conn, peer := established(t, ctx)
	s, r := session(t)
	long := tlstest.Pattern(32 << 20) // more than the sockets hold
	wrote := inBackground(func() error { _, err := conn.Write(long); return err })
	short, cancel := context.WithTimeout(t.Context(), detachTimeout*2)
	defer cancel()
	got := make([]byte, 1)
	if _, err := io.ReadFull(peer, got); err != nil { // the Write has begun
		t.Fatal(err)
	}
	if err := s.Send(short, conn, nil); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrLost) {
		t.Errorf("Send: %v", err)
	}
	other, otherPeer := established(t, ctx)
	received := make(chan *Item, 2)
	go func() {
		for range 2 {
			item, err := r.Receive(patient(t))
			if err != nil {
				t.Error(err)
				break
			}
			received <- item
		}
		close(received)
	}()
	blocked := inBackground(func() error { return s.Send(patient(t), conn, nil) })
	if err := s.Send(patient(t), other, nil); err != nil { // which overtakes the blocked one
		t.Fatal(err)
	}
	item := <-received
	next, err := item.Attach(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wantEcho(t, otherPeer, next)
	rest := make([]byte, len(long)-1)
	if _, err := io.ReadFull(peer, rest); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(await(t, wrote), await(t, blocked)); err != nil {
		t.Fatal(err)
	}
	item = <-received
	if next, err = item.Attach(ctx); err != nil {
		t.Fatal(err)
	}
	wantEcho(t, peer, next)
	if got, want := s.Counts(), (Counts{Connections: 2, Stayed: 1}); got != want {
		t.Errorf("counts %+v", got)
	}
}

// TestSendRefused: a connection that Detach refuses goes on here.
func TestSendRefused(t *testing.T) {
	ctx := ossltest.NewContext(t, tlstest.ServerConfig())
	_, _ = established(t, ctx) // skips
	s, r := session(t)
	done := inBackground(func() error { _, err := r.Receive(patient(t)); return err })
	a, b := tlstest.Loopback()
	defer a.Close()
	conn, peer := ctx.Server(b), tls.Client(a, tlstest.ClientConfig())
	defer conn.Close()
	var refused *ossl.DetachError
	if err := s.Send(patient(t), conn, nil); !errors.As(err, &refused) || errors.Is(err, ErrLost) {
		t.Errorf("Send before the handshake: %v", err)
	}
	tlstest.Shake(t, peer, conn)
	wantEcho(t, peer, conn)
	s.Close()
	if err := await(t, done); err != io.EOF {
		t.Error(err)
	}
	if got, want := s.Counts(), (Counts{Stayed: 1}); got != want {
		t.Errorf("counts %+v", got)
	}
}

// TestSendLost: a connection that is lost is closed for its peer.
func TestSendLost(t *testing.T) {
	ctx := ossltest.NewContext(t, tlstest.ServerConfig())
	tests := map[string]func(t *testing.T, p peerProcess) (stop func()){
		"the new process dies": func(_ *testing.T, p peerProcess) func() {
			p.read(headerLen)
			p.write(replies(msgHave, 1))
			p.read(headerLen)
			return func() { p.Close() }
		},
		"it refuses the state": func(t *testing.T, p peerProcess) func() {
			p.read(headerLen)
			p.write(replies(msgHave, 1))
			for {
				h, _, err := parseHeader(p.read(headerLen), oldProcess)
				if err != nil {
					t.Fatal(err)
				}
				p.read(int(h.length))
				if h.kind == msgState {
					break
				}
			}
			return func() { p.send(header{kind: msgRefused, id: 1}, []byte{refusedState}) }
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn, peer := established(t, ctx)
			s, p := toSender(t)
			done := inBackground(func() error { return s.Send(patient(t), conn, nil) })
			test(t, p)()
			if err := await(t, done); !errors.Is(err, ErrLost) {
				t.Errorf("Send: %v", err)
			}
			wantEnd(t, peer)
			if _, err := conn.Write([]byte("?")); !errors.Is(err, ossl.ErrDetached) {
				t.Errorf("Write: %v", err)
			}
			if got, want := s.Counts(), (Counts{Lost: 1}); got != want {
				t.Errorf("counts %+v", got)
			}
		})
	}
	t.Run("too much data", func(t *testing.T) {
		conn, peer := established(t, ctx)
		s, r := session(t)
		go r.Receive(patient(t))
		if err := s.SendFunc(patient(t), conn, func() []byte { return make([]byte, MaxData+1) }); !errors.Is(err, ErrLost) {
			t.Errorf("Send: %v", err)
		}
		s.Close()
		wantEnd(t, peer)
	})
	t.Run("data that doesn't come", func(t *testing.T) {
		conn, peer := established(t, ctx)
		s, r := session(t)
		go r.Receive(patient(t))
		canceled, cancel := context.WithCancel(patient(t))
		err := s.SendFunc(canceled, conn, func() []byte {
			cancel()
			<-t.Context().Done()
			return nil
		})
		if !errors.Is(err, ErrLost) || !errors.Is(err, context.Canceled) {
			t.Errorf("Send: %v", err)
		}
		wantEnd(t, peer)
	})
	t.Run("a state that is damaged", func(t *testing.T) {
		conn, peer := established(t, ctx)
		r, p := toReceiver(t)
		go r.Receive(patient(t))
		p.send(header{kind: msgSocket, id: 3}, nil, fd(t, conn.NetConn().(*net.TCPConn), nil))
		p.reply()
		p.send(header{kind: msgState, id: 3}, append(binary.BigEndian.AppendUint32(nil, 100), make([]byte, 100)...))
		if kind, reason := p.reply(); kind != msgRefused || reason != refusedState {
			t.Errorf("reply %d, %d", kind, reason)
		}
		wantEnd(t, peer)
	})
	t.Run("an item that is closed", func(t *testing.T) {
		conn, peer := established(t, ctx)
		s, r := session(t)
		item := sent(t, s, r, conn, nil)
		state := item.state
		item.Close()
		wantEnd(t, peer)
		for _, b := range state {
			if b != 0 {
				t.Fatal("the state isn't wiped")
			}
		}
	})
}

// TestSendWipes: no message with a state stays in memory.
func TestSendWipes(t *testing.T) {
	ctx := ossltest.NewContext(t, tlstest.ServerConfig())
	conn, peer := established(t, ctx)
	s, r := session(t)
	item := sent(t, s, r, conn, nil)
	state := item.state
	next, err := item.Attach(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wantEcho(t, peer, next)
	for _, b := range state {
		if b != 0 {
			t.Fatal("the state isn't wiped")
		}
	}
}

// TestOtherUser: neither process talks to another user's.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user: run the test as root")
	}
	const nobody, unchanged = 65534, ^uintptr(0)
	var fds [2]int
	var err error
	func() {
		// The kernel keeps the user of the thread that makes the pair. Raw system calls change only
		// that thread's.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, unchanged, nobody, unchanged); errno != 0 {
			t.Fatal(errno)
		}
		fds, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, unchanged, 0, unchanged); errno != 0 {
			panic(errno)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	for i, open := range []func(conn *net.UnixConn) error{
		func(conn *net.UnixConn) error { _, err := NewSender(patient(t), conn); return err },
		func(conn *net.UnixConn) error { _, err := NewReceiver(patient(t), conn); return err },
	} {
		file := os.NewFile(uintptr(fds[i]), "")
		defer file.Close()
		conn, err := net.FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := open(conn.(*net.UnixConn)); !errors.Is(err, ErrUser) {
			t.Errorf("side %d: %v", i, err)
		}
	}
}

// TestListen: the socket belongs to the user alone, and takes the place of one that was left behind.
func TestListen(t *testing.T) {
	path := t.TempDir() + "/socket"
	first, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := Listen(path); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("while another one listens: %v", err)
	}
	first.SetUnlinkOnClose(false)
	first.Close() // as a process that is killed
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	greeted := inBackground(func() error {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return err
		}
		r, err := NewReceiver(patient(t), conn)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = r.Receive(patient(t))
		return err
	})
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSender(patient(t), conn)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := await(t, greeted); err != io.EOF {
		t.Error(err)
	}
}

// TestInherited: values that are no socket are refused, and none is no error.
func TestInherited(t *testing.T) {
	if conn, err := Inherited(); conn != nil || err != nil {
		t.Errorf("without the variable: %v, %v", conn, err)
	}
	null, err := os.Open(os.DevNull)
	file := fd(t, null, err)
	copied, err := syscall.Dup(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "x", "-1", "2", "99999999999", "1000000", strconv.Itoa(copied)} {
		t.Setenv(envDescriptor, value)
		if conn, err := Inherited(); conn != nil || err == nil {
			t.Errorf("%q: %v, %v", value, conn, err)
		}
		if _, found := os.LookupEnv(envDescriptor); found {
			t.Error("the variable is still set")
		}
	}
}
