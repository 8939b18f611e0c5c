package recipes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/prometheus/client_golang/exp/api/remote"
	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/ossl-go/ossl/examples/recipes"
	"github.com/ossl-go/ossl/internal/recipetest"
)

// TestKubernetes gets an object and watches it, with a stand-in for the API server.
func TestKubernetes(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"greeting","namespace":"default"}}`
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/default/configmaps/greeting", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, object)
	})
	mux.HandleFunc("GET /api/v1/namespaces/default/configmaps", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the client stops the watch
	})
	recipetest.Recipe{
		Client: "client-go", Server: "a stand-in, crypto/tls", Start: serveHTTP(mux),
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			base, err := recipes.HTTPClient(config)
			if err != nil {
				return err
			}
			defer base.CloseIdleConnections()
			c := &rest.Config{Host: "https://" + addr}
			recipes.Kubernetes(c, base)
			client, err := dynamic.NewForConfig(c)
			if err != nil {
				return err
			}
			return watch(ctx, client)
		},
	}.Run(t)
}

func watch(ctx context.Context, client dynamic.Interface) error {
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	if _, err := maps.Get(ctx, "greeting", metav1.GetOptions{}); err != nil {
		return err
	}
	watch, err := maps.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	select {
	case event, ok := <-watch.ResultChan():
		if !ok || event.Type != "ADDED" {
			return fmt.Errorf("event %v, %v", event, ok)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestEtcd(t *testing.T) {
	recipetest.Recipe{
		Client: "etcd clientv3", Server: "etcd",
		Start: func(t *testing.T, site *recipetest.Site) {
			own := "127.0.0.1:" + recipetest.FreePort(t)
			peers := "http://127.0.0.1:" + recipetest.FreePort(t)
			recipetest.Serve(t, "serving client requests on", nil, recipetest.Program(t, "etcd"),
				"--data-dir", site.Files.Dir+"/etcd", "--listen-client-urls", "https://"+own, "--advertise-client-urls", "https://"+own,
				"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers,
				"--cert-file", site.Files.Cert, "--key-file", site.Files.Key, "--trusted-ca-file", site.Files.CA, "--client-cert-auth")
			recipetest.Forward(t, site.Listener, own)
		},
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			client, err := recipes.Etcd([]string{"https://" + addr}, config)
			if err != nil {
				return err
			}
			defer client.Close()
			if _, err := client.Put(ctx, "key", "hello"); err != nil {
				return err
			}
			got, err := client.Get(ctx, "key")
			if err != nil || len(got.Kvs) != 1 {
				return fmt.Errorf("get: %v, %v", got, err)
			}
			return wantHello(got.Kvs[0].Value, nil)
		},
	}.Run(t)
}

func TestS3(t *testing.T) {
	var objects sync.Map
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /bucket/{key}", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		objects.Store(r.PathValue("key"), body)
	})
	mux.HandleFunc("GET /bucket/{key}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := objects.Load(r.PathValue("key"))
		w.Write(body.([]byte))
	})
	recipetest.Recipe{
		Client: "AWS SDK v2, S3", Server: "a stand-in, crypto/tls", Start: serveHTTP(mux),
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			base, err := recipes.HTTPClient(config)
			if err != nil {
				return err
			}
			defer base.CloseIdleConnections()
			client := recipes.S3(s3.Options{
				BaseEndpoint: aws.String("https://" + addr), UsePathStyle: true, Region: "local",
				Credentials: credentials.NewStaticCredentialsProvider("user", "password", ""),
				// A stand-in needn't decode chunks with checksums.
				RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
			}, base)
			bucket, key := aws.String("bucket"), aws.String("key")
			_, err = client.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("hello")})
			if err != nil {
				return err
			}
			got, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key})
			if err != nil {
				return err
			}
			defer got.Body.Close()
			return wantHello(io.ReadAll(got.Body))
		},
	}.Run(t)
}

// TestRemoteWrite: the receiver is the same package's, which decompresses and decodes.
func TestRemoteWrite(t *testing.T) {
	store := samples(make(chan int, 1))
	recipetest.Recipe{
		Client: "Prometheus remote write", Server: "client_golang's receiver, crypto/tls",
		Start: serveHTTP(remote.NewWriteHandler(store, remote.MessageTypes{remote.WriteV2MessageType})),
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			base, err := recipes.HTTPClient(config)
			if err != nil {
				return err
			}
			defer base.CloseIdleConnections()
			api, err := recipes.RemoteWrite("https://"+addr, base)
			if err != nil {
				return err
			}
			_, err = api.Write(ctx, remote.WriteV2MessageType, &writev2.Request{
				Symbols: []string{"", "__name__", "greetings"},
				Timeseries: []*writev2.TimeSeries{{
					LabelsRefs: []uint32{1, 2}, Samples: []*writev2.Sample{{Value: 1, Timestamp: 1}},
				}},
			})
			if err != nil {
				return err
			}
			if n := <-store; n != 1 {
				return fmt.Errorf("%d series", n)
			}
			return nil
		},
	}.Run(t)
}

// samples receives the number of series of each request.
type samples chan int

func (s samples) Store(r *http.Request, _ remote.WriteMessageType) (*remote.WriteResponse, error) {
	body, err := io.ReadAll(r.Body)
	request := &writev2.Request{}
	if err = errors.Join(err, request.UnmarshalVT(body)); err != nil {
		return nil, err
	}
	s <- len(request.Timeseries)
	response := remote.NewWriteResponse()
	response.Add(remote.WriteResponseStats{Samples: 1})
	return response, nil
}
