package grpctls_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// interopCases are the cases in gRPC's interoperability tests that need no account:
// https://github.com/grpc/grpc/blob/master/doc/interop-test-descriptions.md
var interopCases = []interopCase{
	{"empty_unary", onService(interop.DoEmptyUnaryCall)},
	{"large_unary", onService(interop.DoLargeUnaryCall)},
	{"client_streaming", onService(interop.DoClientStreaming)},
	{"server_streaming", onService(interop.DoServerStreaming)},
	{"ping_pong", onService(interop.DoPingPong)},
	{"empty_stream", onService(interop.DoEmptyStream)},
	{"timeout_on_sleeping_server", onService(interop.DoTimeoutOnSleepingServer)},
	{"cancel_after_begin", onService(interop.DoCancelAfterBegin)},
	{"cancel_after_first_response", onService(interop.DoCancelAfterFirstResponse)},
	{"status_code_and_message", onService(interop.DoStatusCodeAndMessage)},
	{"special_status_message", onService(interop.DoSpecialStatusMessage)},
	{"custom_metadata", onService(interop.DoCustomMetadata)},
	{"unimplemented_method", func(ctx context.Context, cc *grpc.ClientConn) { interop.DoUnimplementedMethod(ctx, cc) }},
	{"unimplemented_service", func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(cc))
	}},
}

type interopCase struct {
	name string
	run  func(ctx context.Context, cc *grpc.ClientConn)
}

// try runs the case, and returns the failure that it logs as fatal, if any.
func (c interopCase) try(ctx context.Context, cc *grpc.ClientConn) (wrong string) {
	defer func() {
		switch found := recover().(type) {
		case nil:
		case fatalLog:
			wrong = string(found)
		default:
			panic(found)
		}
	}()
	c.run(ctx, cc)
	return ""
}

type serviceCase = func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption)

func onService(run serviceCase) func(context.Context, *grpc.ClientConn) {
	return func(ctx context.Context, cc *grpc.ClientConn) { run(ctx, testgrpc.NewTestServiceClient(cc)) }
}

// TestInteropGRPC runs gRPC's own interoperability cases.
func TestInteropGRPC(t *testing.T) {
	versions(t, func(t *testing.T, version uint16) {
		pairings(t, func(t *testing.T, server, client impl) {
			s := listen(t, server.creds(serverConfig(atMost(version))))
			testgrpc.RegisterTestServiceServer(s, interop.NewTestServer())
			s.start()
			for _, c := range interopCases {
				t.Run(c.name, func(t *testing.T) {
					cc := dial(t, s.addr, client.creds(clientConfig()))
					wrong := c.try(soon(t), cc)
					// The test cancels a call and finishes it at once. Rarely, the server's
					// response to the end comes first.
					for n := 0; n < 5 && c.name == "cancel_after_begin" && strings.Contains(wrong, "got error code 0, want 1"); n++ {
						wrong = c.try(soon(t), cc)
					}
					if wrong != "" {
						t.Error(wrong)
					}
				})
			}
		})
	})
}
