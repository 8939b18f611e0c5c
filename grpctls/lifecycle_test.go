package grpctls_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// openStream opens a stream and passes one message to and fro, so that it is open on both sides.
func openStream(t testing.TB, ctx context.Context, cc *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	stream, err := cc.NewStream(ctx, &streamDesc, echoStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := exchange(stream, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	return stream
}

var errOther = errors.New("the answer is another one")

// exchange sends a message and waits for its echo.
func exchange(stream grpc.ClientStream, message []byte) error {
	if err := stream.SendMsg(wrapperspb.Bytes(message)); err != nil {
		return err
	}
	m := new(wrapperspb.BytesValue)
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	if string(m.Value) != string(message) {
		return errOther
	}
	return nil
}

// quickly makes a channel reconnect at once.
var quickly = grpc.ConnectParams{MinConnectTimeout: patience, Backoff: backoff.Config{BaseDelay: time.Millisecond}}

// TestReconnect stops a server and starts another one at its address.
func TestReconnect(t *testing.T) {
	pairings(t, func(t *testing.T, server, client impl) {
		creds := server.creds(serverConfig())
		first := serve(t, creds, nil)
		cc := dial(t, first.addr, client.creds(clientConfig()), grpc.WithConnectParams(quickly))
		ctx := soon(t)
		stream := openStream(t, ctx, cc)
		first.Stop()
		if err := stream.RecvMsg(new(wrapperspb.BytesValue)); status.Code(err) != codes.Unavailable {
			t.Errorf("the stream ends with %v, want Unavailable", err)
		}
		l, err := net.Listen("tcp", first.addr)
		for err != nil { // another process may have been given this port
			select {
			case <-ctx.Done():
				t.Fatal(err)
			case <-time.After(10 * time.Millisecond):
			}
			l, err = net.Listen("tcp", first.addr)
		}
		serveOn(t, l, creds)
		if got, err := call(ctx, cc, []byte("again"), grpc.WaitForReady(true)); err != nil || string(got) != "again" {
			t.Errorf("after the restart: %q, %v", got, err)
		}
	})
}

// TestGracefulStop checks that an open stream continues.
func TestGracefulStop(t *testing.T) {
	pairings(t, func(t *testing.T, server, client impl) {
		s := serve(t, server.creds(serverConfig()), nil)
		cc := dial(t, s.addr, client.creds(clientConfig()))
		ctx := soon(t)
		stream := openStream(t, ctx, cc)
		stopped := make(chan struct{})
		go func() { s.GracefulStop(); close(stopped) }()
		for cc.GetState() == connectivity.Ready { // it changes when GOAWAY has come
			if !cc.WaitForStateChange(ctx, connectivity.Ready) {
				t.Fatal("the client isn't told")
			}
		}
		if err := exchange(stream, []byte("still here")); err != nil {
			t.Errorf("on the open stream: %v", err)
		}
		select {
		case <-stopped:
			t.Error("stopped with an open stream")
		default:
		}
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		if err := stream.RecvMsg(new(wrapperspb.BytesValue)); err != io.EOF {
			t.Errorf("the stream ends with %v, want io.EOF", err)
		}
		select {
		case <-stopped:
		case <-ctx.Done():
			t.Error("GracefulStop hangs")
		}
	})
}

// TestStopDuringHandshake stops a server while one client is silent, and another one has sent half
// of its ClientHello.
func TestStopDuringHandshake(t *testing.T) {
	for name, stop := range map[string]func(*server){
		"Stop":         func(s *server) { s.Stop() },
		"GracefulStop": func(s *server) { s.GracefulStop() },
	} {
		for _, server := range impls {
			t.Run(name+"/server="+server.name, func(t *testing.T) {
				checkGoroutines(t)
				begun := make(chan struct{}, 2)
				s := serve(t, begins{server.creds(serverConfig()), begun}, nil, grpc.ConnectionTimeout(500*time.Millisecond))
				var conns []net.Conn
				for _, sends := range []string{"", "\x16\x03\x01\x02\x00\x01"} {
					conn, err := net.Dial("tcp", s.addr)
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					if _, err := conn.Write([]byte(sends)); err != nil {
						t.Fatal(err)
					}
					conns = append(conns, conn)
					<-begun
				}
				stop(s) // waits for handshakes, which ConnectionTimeout bounds
				for _, conn := range conns {
					if _, err := io.Copy(io.Discard, conn); err != nil && !says(err, cutShort) {
						t.Error(err)
					}
				}
			})
		}
	}
}

// begins signals when a server's handshake begins.
type begins struct {
	credentials.TransportCredentials
	begun chan<- struct{}
}

func (b begins) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	b.begun <- struct{}{}
	return b.TransportCredentials.ServerHandshake(raw)
}

// TestSlowHandshakes checks that silent clients don't keep others out, and are disconnected after
// ConnectionTimeout.
func TestSlowHandshakes(t *testing.T) {
	silent := 500
	if testing.Short() {
		silent = 50
	}
	pairings(t, func(t *testing.T, server, client impl) {
		s := serve(t, server.creds(serverConfig()), nil, grpc.ConnectionTimeout(time.Second))
		var slow []net.Conn
		for range silent {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			slow = append(slow, conn)
		}
		if _, err := call(soon(t), dial(t, s.addr, client.creds(clientConfig())), nil, grpc.WaitForReady(true)); err != nil {
			t.Errorf("a good client among silent ones: %v", err)
		}
		for _, conn := range slow {
			if _, err := io.Copy(io.Discard, conn); err != nil && !says(err, cutShort) {
				t.Fatal(err)
			}
		}
	})
}

// silentServer accepts connections, signals each, and sends nothing.
func silentServer(t *testing.T) (addr string, accepted <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 16)
	var held []net.Conn
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			held = append(held, conn)
			select {
			case conns <- conn:
			default:
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
		for _, conn := range held {
			_ = conn.Close()
		}
	})
	return l.Addr().String(), conns
}

// TestHandshakeCancelled cancels the context of a handshake, and closes the channel, while the
// server is silent.
func TestHandshakeCancelled(t *testing.T) {
	for _, who := range impls {
		t.Run("client="+who.name, func(t *testing.T) {
			checkGoroutines(t)
			addr, accepted := silentServer(t)
			dialRaw := func() net.Conn {
				raw, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				return raw
			}
			ctx, cancel := context.WithCancel(context.Background())
			go func() { <-accepted; cancel() }()
			raw := dialRaw()
			if _, _, err := who.creds(clientConfig()).ClientHandshake(ctx, serverName, raw); err != context.Canceled {
				t.Errorf("cancelled: %v", err)
			}
			if _, err := raw.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the connection beneath is not closed: %v", err)
			}
			ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			if _, _, err := who.creds(clientConfig()).ClientHandshake(ctx, serverName, dialRaw()); err != context.DeadlineExceeded {
				t.Errorf("too late: %v", err)
			}

			await(t, "a connection to be accepted", accepted)
			cc := dial(t, addr, who.creds(clientConfig()))
			done := make(chan error, 1)
			go func() { _, err := call(soon(t), cc, nil); done <- err }()
			await(t, "a connection to be accepted", accepted)
			_ = cc.Close()
			if err := await(t, "the call to end", done); status.Code(err) != codes.Canceled {
				t.Errorf("a call on a channel closed: %v", err)
			}
			cc = dial(t, addr, who.creds(clientConfig()))
			ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			if _, err := call(ctx, cc, nil); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("a call with a deadline: %v", err)
			}
		})
	}
}

// TestBlockedCallback checks that if the context is done, a handshake returns even though a
// callback doesn't.
func TestBlockedCallback(t *testing.T) {
	for _, who := range impls {
		t.Run("client="+who.name, func(t *testing.T) {
			checkGoroutines(t)
			called, release := make(chan struct{}), make(chan struct{})
			defer close(release)
			config := clientConfig()
			config.VerifyConnection = func(tlsState) error {
				close(called)
				<-release
				return nil
			}
			s := serve(t, std.creds(serverConfig()), nil)
			raw, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			go func() { <-called; cancel() }()
			if _, _, err := who.creds(config).ClientHandshake(ctx, serverName, raw); err != context.Canceled {
				t.Error(err)
			}
		})
	}
}

// TestDeadlines lets calls exceed their deadline, after which the connection still works.
func TestDeadlines(t *testing.T) {
	pairings(t, func(t *testing.T, server, client impl) {
		s := serve(t, server.creds(serverConfig()), &echo{unary: func(ctx context.Context, in []byte) ([]byte, error) {
			if string(in) == "wait" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return in, nil
		}})
		cc := dial(t, s.addr, client.creds(clientConfig()))
		if _, err := call(soon(t), cc, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if _, err := call(ctx, cc, []byte("wait")); status.Code(err) != codes.DeadlineExceeded {
			t.Error(err)
		}
		ctx, cancel = context.WithCancel(context.Background())
		stream := openStream(t, ctx, cc)
		cancel()
		if err := stream.RecvMsg(new(wrapperspb.BytesValue)); status.Code(err) != codes.Canceled {
			t.Error(err)
		}
		if _, err := call(soon(t), cc, nil); err != nil {
			t.Error(err)
		}
	})
}

// TestKeepalive makes servers ping idle connections. A connection whose client answers stays; one
// whose network is gone is closed.
func TestKeepalive(t *testing.T) {
	if testing.Short() {
		t.Skip("gRPC pings no more often than once a second: only without -short")
	}
	// The timeout is real time in which the client on a busy machine must answer.
	params := grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Second, Timeout: 3 * time.Second})
	checkGoroutines(t)
	ctx := soon(t)
	var all sync.WaitGroup
	for _, server := range impls {
		for _, client := range impls {
			name := "server=" + server.name + "/client=" + client.name
			s := serve(t, server.creds(serverConfig()), nil, params)
			way := &network{addr: s.addr, read: make(chan int, 1024), stalled: make(chan struct{})}
			cc := dial(t, s.addr, client.creds(clientConfig()), grpc.WithContextDialer(way.dial))
			stream := openStream(t, ctx, cc)
			all.Go(func() { // all four at once
				for range 3 { // pings, each after a silent second
					drainChannel(way.read)
					select {
					case <-way.read:
					case <-ctx.Done():
						t.Errorf("%s: no ping", name)
						return
					}
				}
				if err := exchange(stream, []byte("alive")); err != nil {
					t.Errorf("%s: after pings: %v", name, err)
				}
				close(way.stalled) // from now on no output of the client arrives
				if err := stream.RecvMsg(new(wrapperspb.BytesValue)); status.Code(err) != codes.Unavailable {
					t.Errorf("%s: without an answer to pings the stream ends with %v, want Unavailable", name, err)
				}
			})
		}
	}
	all.Wait()
}
