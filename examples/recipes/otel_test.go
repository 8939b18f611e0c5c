package recipes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"github.com/ossl-go/ossl/examples/recipes"
	"github.com/ossl-go/ossl/internal/recipetest"
)

// A spans is a collector that counts.
type spans struct {
	collector.UnimplementedTraceServiceServer
	got chan int
}

func (s *spans) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	n := 0
	for _, resource := range r.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			n += len(scope.Spans)
		}
	}
	s.got <- n
	return &collector.ExportTraceServiceResponse{}, nil
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := &collector.ExportTraceServiceRequest{}
	if err = errors.Join(err, proto.Unmarshal(body, request)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.Export(r.Context(), request)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// export ends a span, which the exporter sends.
func (s *spans) export(ctx context.Context, exporter *otlptrace.Exporter) error {
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	_, span := provider.Tracer("recipes").Start(ctx, "greeting")
	span.End()
	if err := provider.Shutdown(ctx); err != nil {
		return err
	}
	select {
	case n := <-s.got:
		if n != 1 {
			return fmt.Errorf("%d spans", n)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestOTLPHTTP(t *testing.T) {
	receiver := &spans{got: make(chan int, 1)}
	recipetest.Recipe{
		Client: "OTLP over HTTP", Server: "a stand-in, crypto/tls", Start: serveHTTP(receiver),
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			base, err := recipes.HTTPClient(config)
			if err != nil {
				return err
			}
			defer base.CloseIdleConnections()
			exporter, err := recipes.OTLPHTTP(ctx, "https://"+addr, base)
			if err != nil {
				return err
			}
			return receiver.export(ctx, exporter)
		},
	}.Run(t)
}

func TestOTLPGRPC(t *testing.T) {
	receiver := &spans{got: make(chan int, 1)}
	recipetest.Recipe{
		Client: "OTLP over gRPC", Server: "a stand-in, crypto/tls",
		Start: func(t *testing.T, site *recipetest.Site) {
			server := grpc.NewServer(grpc.Creds(credentials.NewTLS(site.Config)))
			collector.RegisterTraceServiceServer(server, receiver)
			serving(t, site.Listener, func() error { defer server.Stop(); return server.Serve(site.Listener) })
		},
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			exporter, err := recipes.OTLPGRPC(ctx, addr, config)
			if err != nil {
				return err
			}
			return receiver.export(ctx, exporter)
		},
	}.Run(t)
}
