package netio_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/ossl-go/ossl/internal/netio"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// unsent returns how many bytes the kernel holds that it has not sent once, or -1 if the number is
// unknown: qemu, which emulates other processors, doesn't support the call.
func unsent(t *testing.T, conn net.Conn) (n int32) {
	t.Helper()
	const siocoutqnsd = 0x894b // linux/sockios.h
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var errno syscall.Errno
	raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, siocoutqnsd, uintptr(unsafe.Pointer(&n)))
	})
	switch {
	case errno == syscall.ENOSYS:
		return -1
	case errno != 0:
		t.Fatal(errno)
	}
	return n
}

// sending returns a socket whose Input has read the peer's "hello", and the peer.
func sending(t *testing.T) (in *netio.Input, conn, peer net.Conn) {
	t.Helper()
	conn, peer = tlstest.Loopback()
	t.Cleanup(func() { conn.Close(); peer.Close() })
	in = new(netio.Input)
	if _, err := peer.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := in.Fill(conn); err != nil || string(in.Data) != "hello" {
		t.Fatal(string(in.Data), err)
	}
	return in, conn, peer
}

// TestSendNow checks which data waits for the end of the stream, and that all of it arrives.
func TestSendNow(t *testing.T) {
	for name, test := range map[string]struct {
		last   bool
		behind string // sent by the peer before
		end    bool   // of the peer's side
		waits  bool
	}{
		"not the last":      {},
		"last":              {last: true, waits: true},
		"last, after FIN":   {last: true, end: true, waits: true},
		"last, more behind": {last: true, behind: "more"},
		"last, both":        {last: true, behind: "more", end: true},
	} {
		t.Run(name, func(t *testing.T) {
			in, conn, peer := sending(t)
			if test.behind != "" {
				peer.Write([]byte(test.behind))
				tlstest.AwaitArrival(t, conn)
			}
			if test.end {
				peer.(*net.TCPConn).CloseWrite()
				for range 1000 { // until FIN has arrived
					if test.behind != "" || !in.Quiet() {
						break
					}
					time.Sleep(time.Millisecond)
				}
			}
			conn.SetWriteDeadline(time.Now().Add(-time.Second)) // has no effect
			if n, err := in.SendNow(conn, []byte("bye"), test.last); n != 3 || err != nil {
				t.Fatal(n, err)
			}
			if n := unsent(t, conn); n >= 0 && (n == 3) != test.waits {
				t.Errorf("%d bytes wait in the kernel", n)
			}
			if test.behind != "" {
				io.ReadFull(conn, make([]byte, len(test.behind))) // so that the end is no reset
			}
			conn.Close()
			if got, err := io.ReadAll(peer); string(got) != "bye" || err != nil {
				t.Errorf("the peer got %q, %v", got, err)
			}
		})
	}
}

// TestSendNowLinger checks that SendNow sends at once on a socket whose close drops unsent data.
func TestSendNowLinger(t *testing.T) {
	in, conn, peer := sending(t)
	conn.(*net.TCPConn).SetLinger(0)
	if n, err := in.SendNow(conn, []byte("bye"), true); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	conn.Close()
	got := make([]byte, 3)
	if n, err := io.ReadFull(peer, got); err != nil {
		t.Errorf("the peer got %q, %v", got[:n], err)
	}
}

// TestSendNowNever checks that SendNow never waits, and its result for a socket that is full, closed or
// reset.
func TestSendNowNever(t *testing.T) {
	t.Run("full", func(t *testing.T) {
		in, conn, _ := sending(t)
		much, sent := make([]byte, 1<<20), 0
		for range 1000 {
			n, err := in.SendNow(conn, much, false)
			if err != nil {
				t.Fatal(err)
			}
			if sent += n; n == 0 {
				break
			}
		}
		if sent == 0 || sent == 1000<<20 {
			t.Errorf("%d bytes were sent", sent)
		}
	})
	t.Run("closed", func(t *testing.T) {
		in, conn, _ := sending(t)
		conn.Close()
		if n, err := in.SendNow(conn, []byte("bye"), true); n != 0 || err != nil {
			t.Error(n, err)
		}
	})
	t.Run("no socket", func(t *testing.T) {
		_, conn, _ := sending(t)
		if n, err := new(netio.Input).SendNow(conn, []byte("bye"), true); n != 0 || err != nil {
			t.Error(n, err)
		}
	})
	t.Run("reset", func(t *testing.T) {
		in, conn, peer := sending(t)
		peer.(*net.TCPConn).SetLinger(0)
		peer.Close()
		tlstest.AwaitArrival(t, conn)
		_, err := in.SendNow(conn, []byte("bye"), false)
		var op *net.OpError
		// AwaitArrival has seen ECONNRESET.
		if !errors.As(err, &op) || op.Op != "write" || op.Net != "tcp" || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%#v", err)
		}
		var call *os.SyscallError
		if !errors.As(err, &call) || call.Syscall != "write" {
			t.Errorf("%#v", err)
		}
	})
}
