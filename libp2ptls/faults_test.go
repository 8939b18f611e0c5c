package libp2ptls

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
)

// ci/libp2p-full does so.
var full = flag.Bool("full", false, "run the tests of faults in their full size")

// A cutConn is cut after it has written a number of bytes.
type cutConn struct {
	net.Conn
	left    int // -1 for never
	written int
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.left < 0 || len(b) <= c.left {
		n, err := c.Conn.Write(b)
		c.written += n
		if c.left >= 0 {
			c.left -= n
		}
		return n, err
	}
	n, _ := c.Conn.Write(b[:c.left])
	c.written += n
	c.left = 0
	c.Conn.Close()
	return n, net.ErrClosed
}

// TestCut cuts the connection after every byte that each side sends in a handshake: both sides
// fail, and neither hangs.
func TestCut(t *testing.T) {
	step := 37
	if *full {
		step = 1
	}
	inAllPairings(t, func(t *testing.T, p pairing) {
		m := p.meeting(t)
		for _, side := range []string{"client", "server"} {
			t.Run(side, func(t *testing.T) {
				try := func(at int) (c, s result, written int) {
					a, b := loopback(t)
					cut := &cutConn{Conn: a, left: at}
					raw, other := net.Conn(cut), b
					if side == "server" {
						cut.Conn = b
						raw, other = a, cut
					}
					c, s = m.run(t, raw, other)
					return c, s, cut.written
				}
				c, s, whole := try(-1)
				if c.err != nil || s.err != nil {
					t.Fatal(c.err, s.err)
				}
				// Lengths of signatures differ by a few bytes from one handshake to the next.
				const margin = 16
				if whole < 300 {
					t.Fatalf("a handshake of %d bytes", whole)
				}
				for at := 0; at < whole-margin; at += step {
					c, s, _ := try(at)
					// A client that has sent its last bytes is done. This one hasn't, but its
					// server hasn't seen the end yet.
					if c.err == nil || s.err == nil || c.conn != nil || s.conn != nil {
						t.Fatalf("cut after %d bytes: client: %v; server: %v", at, c.err, s.err)
					}
				}
			})
		}
	})
}

// A trickle writes byte by byte.
type trickle struct{ net.Conn }

func (c trickle) Write(b []byte) (n int, err error) {
	for i := range b {
		if _, err := c.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// TestSlowPeers delivers everything byte by byte.
func TestSlowPeers(t *testing.T) {
	inAllPairings(t, func(t *testing.T, p pairing) {
		a, b := loopback(t)
		c, s := p.meeting(t).run(t, trickle{a}, trickle{b})
		if c.err != nil || s.err != nil {
			t.Fatal(c.err, s.err)
		}
		exchange(t, c.conn, s.conn)
		exchange(t, s.conn, c.conn)
	})
}

// TestGarbage sends each side data that is not TLS.
func TestGarbage(t *testing.T) {
	for _, f := range flavours {
		for _, side := range []string{"client", "server"} {
			t.Run(f.name+"/"+side, func(t *testing.T) {
				tr := f.transport(t, serverPeer(), nil)
				a, b := loopback(t)
				if _, err := io.WriteString(a, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				secure := tr.SecureInbound
				if side == "client" {
					secure = tr.SecureOutbound
				}
				conn, err := secure(t.Context(), b, "")
				var header tls.RecordHeaderError
				if conn != nil || !errors.As(err, &header) {
					t.Errorf("%v, %v", conn, err)
				}
				wantClosed(t, b)
			})
		}
	}
}

// TestHalfOpen makes a thousand handshakes wait for their clients, some silent and some after their
// hello. A cancelled context stops them all, nothing of them is left, and the transport still
// works.
func TestHalfOpen(t *testing.T) {
	handshakes := 200
	if *full {
		handshakes = 1000
	}
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			server := f.transport(t, serverPeer(), nil)
			hello := helloOf(t, f)
			before := runtime.NumGoroutine()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var waiting, ended sync.WaitGroup
			clients := make([]net.Conn, handshakes)
			errs := make(chan error, handshakes)
			for i := range handshakes {
				a, b := net.Pipe()
				clients[i] = a
				waiting.Add(1)
				ended.Add(2)
				go func() {
					defer ended.Done()
					conn, err := server.SecureInbound(ctx, b, "")
					if conn != nil {
						t.Error("accepted")
					}
					errs <- err
				}()
				go func() {
					defer ended.Done()
					if i%2 == 0 { // silent after its first bytes, which have been read when Write returns
						a.Write(hello[:10])
						waiting.Done()
					} else {
						a.Write(hello)
						a.Read(make([]byte, 5)) // of the server's flight
						waiting.Done()
					}
					io.Copy(io.Discard, a)
				}()
			}
			all := make(chan bool)
			go func() { waiting.Wait(); close(all) }()
			await(t, all)
			cancel()
			for range handshakes {
				if err := await(t, errs); !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
			}
			over := make(chan bool)
			go func() { ended.Wait(); close(over) }() // every client's connection was closed
			await(t, over)
			// The goroutines that watched the contexts end by themselves.
			for limit := time.Now().Add(patience); runtime.NumGoroutine() > before+5; {
				if time.Now().After(limit) {
					t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
				}
				time.Sleep(time.Millisecond)
			}
			m := meeting{server: server, client: f.transport(t, clientPeer(), nil), clientWants: serverPeer().id}
			c, s := m.both(t)
			exchange(t, c, s)
			runtime.KeepAlive(clients)
		})
	}
}

// helloOf returns a client's first flight.
func helloOf(t *testing.T, f flavour) []byte {
	t.Helper()
	a, b := net.Pipe()
	client := f.transport(t, clientPeer(), nil)
	done := make(chan error, 1)
	go func() {
		_, err := client.SecureOutbound(context.Background(), a, "")
		done <- err
	}()
	header := make([]byte, 5)
	if _, err := io.ReadFull(b, header); err != nil {
		t.Fatal(err)
	}
	hello := append(header, make([]byte, int(header[3])<<8|int(header[4]))...)
	if _, err := io.ReadFull(b, hello[5:]); err != nil {
		t.Fatal(err)
	}
	b.Close()
	await(t, done)
	return hello
}

// TestClosedBeneath closes the connection beneath before the handshake.
func TestClosedBeneath(t *testing.T) {
	for _, f := range flavours {
		for _, side := range []string{"client", "server"} {
			t.Run(f.name+"/"+side, func(t *testing.T) {
				tr := f.transport(t, serverPeer(), nil)
				_, b := loopback(t)
				b.Close()
				var secure func(context.Context, net.Conn, peer.ID) (sec.SecureConn, error) = tr.SecureInbound
				if side == "client" {
					secure = tr.SecureOutbound
				}
				if conn, err := secure(t.Context(), b, ""); conn != nil || !errors.Is(err, net.ErrClosed) {
					t.Errorf("%v, %v", conn, err)
				}
			})
		}
	}
}
