package grpctls_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A cutPipe is a connection that is cut after a number of bytes, in both directions together.
type cutPipe struct {
	left   atomic.Int64
	client net.Conn
	server net.Conn
}

func newCutPipe(left int64) (p *cutPipe) {
	p = new(cutPipe)
	p.left.Store(left)
	a, b := net.Pipe()
	p.client, p.server = cutConn{a, p}, cutConn{b, p}
	return p
}

func (p *cutPipe) cut() {
	_ = p.client.Close()
	_ = p.server.Close()
}

type cutConn struct {
	net.Conn
	pipe *cutPipe
}

// Write writes up to the limit, then cuts the connection. It reports no error, nor would TCP.
func (c cutConn) Write(b []byte) (int, error) {
	left := c.pipe.left.Add(int64(-len(b)))
	if left > 0 {
		return c.Conn.Write(b)
	}
	if pass := left + int64(len(b)); pass > 0 {
		if n, err := c.Conn.Write(b[:pass]); err != nil {
			return n, err
		}
	}
	c.pipe.cut()
	return len(b), nil
}

// TestHandshakeCutAnywhere cuts a handshake after each of its bytes: a side that isn't done gets an
// error, and none hangs.
func TestHandshakeCutAnywhere(t *testing.T) {
	step := int64(1)
	if testing.Short() {
		step = 37
	}
	versions(t, func(t *testing.T, version uint16) {
		pairings(t, func(t *testing.T, server, client impl) {
			if server.name == std.name && client.name == std.name {
				return // it doesn't test our code, and takes time
			}
			serverCreds := server.creds(serverConfig(atMost(version)))
			clientCreds := client.creds(clientConfig())
			// run returns how many bytes were left, and both sides' errors.
			run := func(bytes int64) (left int64, serverErr, clientErr error) {
				p := newCutPipe(bytes)
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() {
					conn, _, err := serverCreds.ServerHandshake(p.server)
					if serverErr = err; err != nil {
						return
					}
					_, _ = io.ReadFull(conn, make([]byte, 1)) // the preface
				})
				conn, _, err := clientCreds.ClientHandshake(ctx, serverName, p.client)
				if clientErr = err; err == nil {
					_, _ = conn.Write([]byte{1})
				}
				left = p.left.Load()
				p.cut()
				wg.Wait()
				return left, serverErr, clientErr
			}
			const plenty = 1 << 20
			left, serverErr, clientErr := run(plenty)
			if serverErr != nil || clientErr != nil {
				t.Fatal(serverErr, clientErr)
			}
			total := plenty - left
			for cut := int64(0); cut < total; cut += step {
				_, serverErr, clientErr := run(cut)
				if clientErr == context.DeadlineExceeded {
					t.Fatalf("cut after %d of %d bytes: the client hangs", cut, total)
				}
				// The last record is the first of the application, and in TLS 1.3 the client is
				// done when it has sent its Finished.
				const application = 64
				if cut < total-application-100 && (serverErr == nil || clientErr == nil && version == tls.VersionTLS12) {
					t.Errorf("cut after %d of %d bytes: server %v, client %v", cut, total, serverErr, clientErr)
				}
			}
		})
	})
}

// TestCallCutAnywhere cuts a connection during the handshake, and during a call: the status is
// Unavailable, and the next connection works.
func TestCallCutAnywhere(t *testing.T) {
	versions(t, func(t *testing.T, version uint16) {
		pairings(t, func(t *testing.T, server, client impl) {
			pipes := make(chan net.Conn)
			s := serveOn(t, pipeListener{pipes, make(chan struct{}), new(sync.Once)}, server.creds(serverConfig(atMost(version))))
			creds := client.creds(clientConfig())
			for _, cut := range []int64{0, 1, 5, 100, 200, 400, 700, 900, 1000, 1200, 1500} {
				t.Run(fmt.Sprint(cut), func(t *testing.T) {
					var good atomic.Bool // makes the next connection good
					cc := dial(t, s.addr, creds, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
						left := cut
						if good.Load() {
							left = 1 << 40
						}
						p := newCutPipe(left)
						select {
						case pipes <- p.server:
							return p.client, nil
						case <-ctx.Done():
							return nil, ctx.Err()
						}
					}), grpc.WithConnectParams(quickly))
					ctx := soon(t)
					// gRPC itself retries if the server can't have seen the call: until the call
					// fails, all connections are cut. Invoke returns SendMsg's io.EOF, instead of the status, if
					// the connection is lost between the stream's beginning and the message.
					if _, err := call(ctx, cc, make([]byte, 4096)); status.Code(err) != codes.Unavailable && err != io.EOF {
						t.Errorf("%v, want Unavailable", err)
					}
					good.Store(true)
					if _, err := call(ctx, cc, make([]byte, 4096), grpc.WaitForReady(true)); err != nil {
						t.Errorf("on the next connection: %v", err)
					}
				})
			}
		})
	})
}

// A pipeListener accepts the connections of a channel.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   *sync.Once
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
