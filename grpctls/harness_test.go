package grpctls_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ossl-go/ossl/grpctls"
)

// patience is the time after which a test counts as hung.
const patience = time.Minute

// An impl makes credentials from a configuration.
type impl struct {
	name  string
	creds func(*tls.Config) credentials.TransportCredentials
}

var (
	std   = impl{"std", credentials.NewTLS}
	ours  = impl{"ossl", func(c *tls.Config) credentials.TransportCredentials { return grpctls.NewTLS(c) }}
	impls = []impl{std, ours}
)

// pairings runs a test in all four pairings of gRPC's own credentials and ours.
func pairings(t *testing.T, test func(t *testing.T, server, client impl)) {
	for _, server := range impls {
		for _, client := range impls {
			t.Run(fmt.Sprintf("server=%s/client=%s", server.name, client.name), func(t *testing.T) {
				checkGoroutines(t)
				test(t, server, client)
			})
		}
	}
}

// versions runs a test with TLS 1.2 and with TLS 1.3.
func versions(t *testing.T, test func(t *testing.T, version uint16)) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(strings.ReplaceAll(tls.VersionName(version), " ", ""), func(t *testing.T) { test(t, version) })
	}
}

// An echo is the tests' service. It echoes its input, unless it is configured otherwise.
type echo struct {
	unary  func(ctx context.Context, in []byte) ([]byte, error)
	stream func(stream grpc.ServerStream) error
}

const (
	echoUnary  = "/ossl.test.Echo/Unary"
	echoStream = "/ossl.test.Echo/Stream"
)

var streamDesc = grpc.StreamDesc{StreamName: "Stream", ServerStreams: true, ClientStreams: true,
	Handler: func(srv any, stream grpc.ServerStream) error {
		if h := srv.(*echo).stream; h != nil {
			return h(stream)
		}
		return echoAll(stream)
	}}

var echoDesc = grpc.ServiceDesc{
	ServiceName: "ossl.test.Echo",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Unary", Handler: handleUnary}},
	Streams:     []grpc.StreamDesc{streamDesc},
}

func handleUnary(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.BytesValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	answer := func(ctx context.Context, req any) (any, error) {
		if h := srv.(*echo).unary; h != nil {
			out, err := h(ctx, req.(*wrapperspb.BytesValue).Value)
			return wrapperspb.Bytes(out), err
		}
		return req, nil
	}
	if interceptor == nil {
		return answer(ctx, in)
	}
	return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: echoUnary}, answer)
}

// echoAll echoes each message until the client has no more.
func echoAll(stream grpc.ServerStream) error {
	for {
		m := new(wrapperspb.BytesValue)
		if err := stream.RecvMsg(m); err != nil {
			return ignoreEOF(err)
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
}

// call makes a unary call.
func call(ctx context.Context, cc *grpc.ClientConn, in []byte, opts ...grpc.CallOption) ([]byte, error) {
	out := new(wrapperspb.BytesValue)
	err := cc.Invoke(ctx, echoUnary, wrapperspb.Bytes(in), out, opts...)
	return out.Value, err
}

// A server is a gRPC server on a port of its own.
type server struct {
	*grpc.Server
	addr  string
	start func()
}

// listen makes a server without a service, which is stopped at the end of the test.
func listen(t testing.TB, creds credentials.TransportCredentials, opts ...grpc.ServerOption) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serverOn(t, l, creds, opts...)
}

func serverOn(t testing.TB, l net.Listener, creds credentials.TransportCredentials, opts ...grpc.ServerOption) *server {
	s := &server{Server: grpc.NewServer(append(opts, grpc.Creds(creds))...), addr: l.Addr().String()}
	served := make(chan error, 1)
	s.start = func() {
		go func() { served <- s.Serve(l) }()
		t.Cleanup(func() {
			s.Stop()
			if err := await(t, "Serve to return", served); err != nil && err != grpc.ErrServerStopped {
				t.Errorf("Serve: %v", err)
			}
		})
	}
	return s
}

// serve starts a server with the echo service.
func serve(t testing.TB, creds credentials.TransportCredentials, service *echo, opts ...grpc.ServerOption) *server {
	t.Helper()
	s := listen(t, creds, opts...)
	s.serve(service)
	return s
}

func serveOn(t testing.TB, l net.Listener, creds credentials.TransportCredentials) *server {
	s := serverOn(t, l, creds)
	s.serve(nil)
	return s
}

func (s *server) serve(service *echo) {
	if service == nil {
		service = &echo{}
	}
	s.RegisterService(&echoDesc, service)
	s.start()
}

// dial makes a client connection, which is closed at the end of the test.
func dial(t testing.TB, addr string, creds credentials.TransportCredentials, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+addr, append(opts, grpc.WithTransportCredentials(creds), grpc.WithNoProxy())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// soon returns a context that is cancelled when the test is over, or if it hangs.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// await returns the value from ch, and fails the test if that takes too long.
func await[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
		panic("unreachable")
	}
}

// checkGoroutines fails a test that leaves goroutines of gRPC, ossl or this module behind.
func checkGoroutines(t testing.TB) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		var left []string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) { // their end is not signalled
			left = left[:0]
			for id, stack := range goroutines() {
				if before[id] == "" {
					left = append(left, stack)
				}
			}
			if len(left) == 0 {
				return
			}
		}
		t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
	})
}

// goroutines returns the stacks of gRPC's and our goroutines, except for the caller's, by id.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := map[string]string{}
	for i, stack := range strings.Split(string(buf), "\n\n") {
		if i == 0 || strings.Contains(stack, "testing.(*T).Run(") || strings.Contains(stack, "testing.tRunner.func") {
			continue
		}
		if strings.Contains(stack, "google.golang.org/grpc") || strings.Contains(stack, "ossl-go/ossl") {
			id, _, _ := strings.Cut(stack, " [")
			stacks[id] = stack
		}
	}
	return stacks
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
