package terminator_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestGRPC runs gRPC's own interoperability cases, streams in both directions and trailers among
// them, between a gRPC client and gRPC servers, with the proxy between them. If a case fails,
// its process exits with the reason.
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
			{"timeout on sleeping server", interop.DoTimeoutOnSleepingServer},
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

// TestGRPCDeadline: a call whose deadline has passed when the backend resets the stream gets DEADLINE_EXCEEDED. All
// other requests get 502.
func TestGRPCDeadline(t *testing.T) {
	w := newWorld(t)
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		time.Sleep(5 * time.Millisecond)
		panic(http.ErrAbortHandler)
	}))
	backend.EnableHTTP2 = true
	backend.TLS = &tls.Config{Certificates: w.certificates(w.pair(false, "127.0.0.1"))}
	backend.StartTLS()
	t.Cleanup(backend.Close)
	r := w.start(w.config("ossl", terminator.Site{Backend: terminator.Backend{To: backend.URL, CA: w.authority.File}}))
	for _, c := range []struct {
		contentType, timeout string
		http2, late          bool
	}{
		{"application/grpc", "1m", true, true},
		{"application/grpc+proto", "1000u", true, true},
		{"application/grpc", "99999n", true, true},
		{"application/grpc", "0S", true, true},
		{"application/grpc", "1M", true, false},
		{"application/grpc", "99999999H", true, false},
		{"application/grpc", "", true, false},
		{"application/grpc", "1", true, false},
		{"application/grpc", "m", true, false},
		{"application/grpc", "1mm", true, false},
		{"application/grpc", "-1m", true, false},
		{"application/grpc", "1x", true, false},
		{"application/grpc", "000000001m", true, false},
		{"application/json", "1m", true, false},
		{"application/grpc-web+proto", "1m", true, false},
		{"application/grpc", "1m", false, false},
	} {
		request, err := http.NewRequest(http.MethodPost, "https://localhost/service/method", strings.NewReader("call"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", c.contentType)
		request.Header.Set("Grpc-Timeout", c.timeout)
		resp, err := r.client(c.http2, nil).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		h := resp.Header
		late := resp.StatusCode == http.StatusOK && h.Get("Grpc-Status") == "4" && h.Get("Content-Type") == "application/grpc"
		if late != c.late || !late && (resp.StatusCode != http.StatusBadGateway || h.Get("Grpc-Status") != "") {
			t.Errorf("%+v: %d %v", c, resp.StatusCode, h)
		}
	}
}
