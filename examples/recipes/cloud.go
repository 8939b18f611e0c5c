package recipes

import (
	"context"
	"crypto/tls"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/prometheus/client_golang/exp/api/remote"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"google.golang.org/grpc"
	"k8s.io/client-go/rest"

	"github.com/ossl-go/ossl/grpctls"
)

// Kubernetes sets the transport of all clients made with c.
func Kubernetes(c *rest.Config, client *http.Client) {
	c.TLSClientConfig, c.Transport = rest.TLSClientConfig{}, client.Transport
}

// Etcd returns a client of etcd.
func Etcd(endpoints []string, config *tls.Config) (*clientv3.Client, error) {
	creds, err := grpctls.New(config)
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Endpoints:   endpoints,
		DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(creds)}, // the last credentials count
	})
}

// S3 returns a client with the given settings. The other services of the AWS SDK have the same field.
func S3(settings s3.Options, client *http.Client) *s3.Client {
	settings.HTTPClient = client
	return s3.New(settings)
}

// RemoteWrite returns a sender of Prometheus's remote write.
func RemoteWrite(url string, client *http.Client) (*remote.API, error) {
	return remote.NewAPI(url, remote.WithAPIHTTPClient(client))
}

// OTLPHTTP returns an exporter of OpenTelemetry's traces over HTTP.
func OTLPHTTP(ctx context.Context, url string, client *http.Client) (*otlptrace.Exporter, error) {
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url), otlptracehttp.WithHTTPClient(client))
}

// OTLPGRPC returns an exporter of OpenTelemetry's traces over gRPC.
func OTLPGRPC(ctx context.Context, addr string, config *tls.Config) (*otlptrace.Exporter, error) {
	creds, err := grpctls.New(config)
	if err != nil {
		return nil, err
	}
	return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(addr), otlptracegrpc.WithTLSCredentials(creds))
}
