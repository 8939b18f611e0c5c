//go:build cgo || ossl_nocgo

package conns

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestDeadlines(t *testing.T) {
	for name, pair := range map[string]func() (net.Conn, net.Conn){"tcp": tlstest.Loopback, "pipe": tlstest.NetPipe} {
		t.Run(name, func(t *testing.T) {
			client, server := ossltest.Connected(t, pair, nil)
			buf := make([]byte, 10)
			client.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			_, err := client.Read(buf)
			var timeout net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Fatalf("got %v", err)
			}
			// A deadline that has passed can be moved, and nothing was lost.
			client.SetReadDeadline(time.Time{})
			go server.Write([]byte("late"))
			if n, err := client.Read(buf); err != nil || string(buf[:n]) != "late" {
				t.Fatalf("%q, %v", buf[:n], err)
			}
			// A deadline set while a Read waits makes it return.
			done := make(chan error, 1)
			go func() { _, err := client.Read(buf); done <- err }()
			time.Sleep(5 * time.Millisecond)
			client.SetReadDeadline(time.Now())
			if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			// After a Write was cut short, all later ones fail.
			client.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
			if _, err := client.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			client.SetWriteDeadline(time.Time{})
			if _, err := client.Write([]byte("more")); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("got %v after a Write that timed out", err)
			}
		})
	}
}

// TestSocketReadErrors: Read returns the errors of the underlying connection, though it reads from
// the socket itself.
func TestSocketReadErrors(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "tcp4": "127.0.0.1:0", "unix": t.TempDir() + "/socket"} {
		t.Run(network, func(t *testing.T) {
			client, _ := ossltest.Connected(t, func() (net.Conn, net.Conn) { return tlstest.Sockets(network, address) }, nil)
			buf := make([]byte, 1)
			for _, cause := range []func() error{
				func() error { return client.SetReadDeadline(time.Unix(1, 0)) },
				client.NetConn().Close,
			} {
				if err := cause(); err != nil {
					t.Fatal(err)
				}
				_, want := client.NetConn().Read(buf)
				if _, got := client.Read(buf); want == nil || !reflect.DeepEqual(got, want) {
					t.Errorf("got %#v, want %#v", got, want)
				}
			}
		})
	}
}

func TestAfterClose(t *testing.T) {
	client, server := ossltest.Connected(t, tlstest.Loopback, nil)
	state := client.ConnectionState()
	if material, err := state.ExportKeyingMaterial("label", nil, 16); err != nil || len(material) != 16 {
		t.Errorf("before Close: %x, %v", material, err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read: %v", err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write: %v", err)
	}
	if err := client.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	if _, err := client.ExportKeyingMaterial("label", nil, 16); !errors.Is(err, net.ErrClosed) {
		t.Errorf("ExportKeyingMaterial: %v", err)
	}
	if _, err := state.ExportKeyingMaterial("label", nil, 16); !errors.Is(err, net.ErrClosed) {
		t.Errorf("ConnectionState.ExportKeyingMaterial: %v", err)
	}
	if got := client.ConnectionState(); !got.HandshakeComplete || got.Version != state.Version {
		t.Error("the state is gone")
	}
	if n, err := server.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the peer reads %d, %v", n, err)
	}
}

// TestDroppedConnectionsAreFreed checks that the C memory of a connection that was not closed is
// freed when it is collected, with and without a handshake.
func TestDroppedConnectionsAreFreed(t *testing.T) {
	p := ossltest.NewContexts(t, nil)
	before := libssl.Crossings()
	const dropped = 20
	func() {
		for i := range dropped {
			a, b := tlstest.Buffered()
			client, server := p.Client.Client(a, ""), p.Server.Server(b)
			if i%2 == 0 {
				go server.Handshake()
			} else {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				go server.HandshakeContext(ctx)
				client.SetReadDeadline(time.Now().Add(time.Millisecond))
			}
			client.Handshake()
		}
	}()
	// A connection's crossings are counted when it is freed: at least four for each client.
	for limit := time.Now().Add(tlstest.Patience); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		runtime.GC()
		if libssl.Crossings() >= before+dropped/2*4 {
			return
		}
	}
	t.Error("connections that were dropped are not freed")
}

// TestCloseNotifyDuringHandshake: the handshake fails, as in crypto/tls.
func TestCloseNotifyDuringHandshake(t *testing.T) {
	p := ossltest.NewContexts(t, nil)
	a, b := tlstest.Buffered()
	go func() {
		io.ReadFull(b, make([]byte, 5))
		b.Write([]byte{21, 3, 3, 0, 2, 1, 0})
	}()
	done := make(chan error, 1)
	go func() { done <- p.Client.Client(a, "").Handshake() }()
	select {
	case err := <-done:
		if err != io.EOF {
			t.Errorf("got %v", err)
		}
	case <-time.After(tlstest.Patience):
		t.Error("it goes on waiting")
	}
}

// TestPlaintextIsNoData: bytes that arrived in the clear, followed by the end of the connection,
// are never data, even if the handshake was not complete (CVE-2023-40217).
func TestPlaintextIsNoData(t *testing.T) {
	p := ossltest.NewContexts(t, nil)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 8 {
		peer, raw := tlstest.Loopback()
		io.WriteString(peer, []string{"GET /secret HTTP/1.1\r\n\r\n", "\x17\x03\x03\x00\x06secret"}[i%2])
		peer.Close()
		c := p.Client.Client(raw, "")
		if i&2 != 0 {
			c = p.Server.Server(raw)
		}
		if i&4 != 0 {
			c.HandshakeContext(canceled)
		}
		if got, err := io.ReadAll(c); len(got) > 0 || err == nil || c.ConnectionState().HandshakeComplete {
			t.Errorf("case %d: read %q, %v", i, got, err)
		}
		c.Close()
	}
}
