package measure

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
	"github.com/ossl-go/ossl/grpctls"
)

func calls(bool) []*Row {
	row := func(name, benchmark string, anew bool) *Row {
		return &Row{Name: name, Benchmark: benchmark, Unit: PerSecond, make: func(ends Ends) (bench.Measure, error) {
			return newCalls(ends, anew)
		}}
	}
	return []*Row{
		row("gRPC, connection kept", "Ping", false),
		row("gRPC, new connections, ECDSA", "Connect", true),
	}
}

// callTime bounds a call, so that the measurement fails if a server hangs.
const callTime = 10 * time.Second

// echoMethod is the method of echoService.
const echoMethod = "/ossl.bench.Echo/Unary"

// echoService answers with the request.
var echoService = grpc.ServiceDesc{
	ServiceName: "ossl.bench.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Unary", Handler: func(_ any, _ context.Context, decode func(any) error,
		_ grpc.UnaryServerInterceptor) (any, error) {
		in := new(wrapperspb.BytesValue)
		return in, decode(in)
	}}},
}

// grpcCalls measures unary calls of a few bytes, one after the other, over loopback: with gRPC's own
// credentials, or with grpctls.
type grpcCalls struct {
	creds  credentials.TransportCredentials
	target string
	server *grpc.Server
	kept   *grpc.ClientConn // nil if each call has a new connection
	ops    int
}

func newCalls(ends Ends, anew bool) (bench.Measure, error) {
	id, err := throwAway()
	if err != nil {
		return nil, err
	}
	kex := []tls.CurveID{bench.DefaultKex()}
	serverCreds, err := credentialsOf(ends.Server, &tls.Config{Certificates: []tls.Certificate{id.cert}, CurvePreferences: kex,
		SessionTicketsDisabled: true})
	if err != nil {
		return nil, err
	}
	c := &grpcCalls{server: grpc.NewServer(grpc.Creds(serverCreds))}
	if c.creds, err = credentialsOf(ends.Client, &tls.Config{RootCAs: id.roots, CurvePreferences: kex}); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.target = "passthrough:///" + listener.Addr().String()
	c.server.RegisterService(&echoService, nil)
	go func() { _ = c.server.Serve(listener) }()
	if !anew {
		c.kept, err = c.dial()
	}
	if err == nil {
		err = c.Do()
	}
	if err != nil {
		_, closeErr := c.Close()
		return nil, errors.Join(err, closeErr)
	}
	return c, nil
}

func credentialsOf(impl bench.Impl, config *tls.Config) (credentials.TransportCredentials, error) {
	if impl == bench.OSSL {
		return grpctls.New(config)
	}
	return credentials.NewTLS(config), nil
}

func (c *grpcCalls) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient(c.target, grpc.WithTransportCredentials(c.creds), grpc.WithNoProxy())
}

func (c *grpcCalls) Prepare() (int, error) { return int(^uint(0) >> 1), nil }

func (c *grpcCalls) Do() (err error) {
	c.ops++
	if c.kept != nil {
		return call(c.kept)
	}
	conn, err := c.dial()
	if err != nil {
		return err
	}
	return errors.Join(call(conn), conn.Close())
}

func call(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	const message = "PING\n"
	out := new(wrapperspb.BytesValue)
	if err := conn.Invoke(ctx, echoMethod, wrapperspb.Bytes([]byte(message)), out); err != nil {
		return err
	}
	if string(out.Value) != message {
		return fmt.Errorf("an answer of %d bytes", len(out.Value))
	}
	return nil
}

func (c *grpcCalls) Close() (int, error) {
	var err error
	if c.kept != nil {
		err = c.kept.Close()
	}
	c.server.Stop()
	return c.ops, err
}
