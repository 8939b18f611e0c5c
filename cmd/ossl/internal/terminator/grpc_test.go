package terminator_test

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// timeOut calls a server that never answers. gRPC's own case takes DEADLINE_EXCEEDED alone; through a
// proxy the backend's timer may be first, and gRPC makes UNAVAILABLE of the proxy's 502.
func timeOut(ctx context.Context, service testgrpc.TestServiceClient, _ ...grpc.CallOption) {
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	stream, err := service.FullDuplexCall(ctx)
	if err == nil {
		_ = stream.Send(&testgrpc.StreamingOutputCallRequest{})
		_, err = stream.Recv()
	}
	if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Unavailable {
		panic(err)
	}
}

// TestGRPC runs gRPC's own interoperability cases, streams in both directions and trailers among them,
// between a client and servers of gRPC, with the proxy between them. A case that fails ends the
// process with its reason.
func TestGRPC(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l, second := newWorld(t), listen(t), listen(t)
		server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: w.certificates(w.pair(false, "backend.test"))})))
		testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
		go func() { _ = server.Serve(l) }()
		go func() { _ = server.Serve(second) }()
		t.Cleanup(server.Stop)
		r := w.start(w.config(engine, terminator.Site{Backend: terminator.Backend{
			To: "https://" + l.Addr().String(), Others: []string{"https://" + second.Addr().String()},
			Name: "backend.test", CA: w.authority.File}}))
		conn, err := grpc.NewClient("passthrough:///"+r.addr,
			grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: r.roots, ServerName: "localhost"})))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		service := testgrpc.NewTestServiceClient(conn)
		for _, c := range []struct {
			name string
			run  func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption)
		}{
			{"empty unary", interop.DoEmptyUnaryCall},
			{"large unary", interop.DoLargeUnaryCall},
			{"client streaming", interop.DoClientStreaming},
			{"server streaming", interop.DoServerStreaming},
			{"ping pong", interop.DoPingPong},
			{"empty stream", interop.DoEmptyStream},
			{"timeout on sleeping server", timeOut},
			{"cancel after first response", interop.DoCancelAfterFirstResponse},
			{"status code and message", interop.DoStatusCodeAndMessage},
			{"special status message", interop.DoSpecialStatusMessage},
			{"custom metadata", interop.DoCustomMetadata},
		} {
			t.Run(c.name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				c.run(ctx, service)
			})
		}
	})
}
