package otelossl_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/ossl-go/ossl"
)

const serverName = "server.test"

// configs returns configurations of a client and of a server that understand each other.
func configs(t testing.TB) (client, server *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{serverName}, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	curves := []tls.CurveID{tls.X25519}
	client = &tls.Config{RootCAs: roots, ServerName: serverName, CurvePreferences: curves, NextProtos: []string{"h2"}}
	server = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, CurvePreferences: curves,
		NextProtos: []string{"h2"},
	}
	return client, server
}

func newContext(t testing.TB, config *tls.Config, opts ...ossl.Option) *ossl.Context {
	t.Helper()
	opts = append(opts, ossl.WithTLS13CipherSuites(tls.TLS_AES_128_GCM_SHA256))
	ctx, err := ossl.NewContext(config, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// sockets returns both sides of a connection over loopback.
func sockets(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// visit makes a connection, which carries four bytes from the client, and closes it. It returns the
// errors of both sides. clientCtx is the client's for the handshake.
func visit(t testing.TB, clientCtx context.Context, client, server *ossl.Context) (clientErr, serverErr error) {
	t.Helper()
	rawClient, rawServer := sockets(t)
	done := make(chan error, 1)
	go func() {
		s := server.Server(rawServer)
		_, err := io.Copy(io.Discard, s)
		_ = s.Close() // before the caller reads statistics
		done <- err
	}()
	c := client.Client(rawClient, "")
	if clientErr = c.HandshakeContext(clientCtx); clientErr == nil {
		if _, clientErr = c.Write([]byte("text")); clientErr == nil {
			clientErr = c.CloseWrite()
		}
	} else {
		_ = rawClient.Close()
	}
	serverErr = <-done
	_ = c.Close()
	return clientErr, serverErr
}

// A point is the value of a metric with attributes: a sum, or the count of a histogram.
type point struct {
	metric, unit string
	attributes   string
	value        int64
}

// collect returns all points that are not zero.
func collect(t *testing.T, reader *sdkmetric.ManualReader) map[point]bool {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	points := map[point]bool{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			add := func(set attribute.Set, value int64) {
				if value != 0 {
					points[point{m.Name, m.Unit, set.Encoded(attribute.DefaultEncoder()), value}] = true
				}
			}
			switch data := m.Data.(type) {
			case metricdata.Gauge[float64]: // in seconds, or 0 or 1
				for _, p := range data.DataPoints {
					add(p.Attributes, int64(p.Value))
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					if p.Sum <= 0 || len(p.Bounds) != 15 || p.Bounds[0] != 0.00025 {
						t.Errorf("%s: sum %v, bounds %v", m.Name, p.Sum, p.Bounds)
					}
					add(p.Attributes, int64(p.Count))
				}
			default:
				t.Errorf("%s: data of type %T", m.Name, data)
			}
		}
	}
	return points
}

// compare reports the points that are missing and those that are too many.
func compare(t *testing.T, got map[point]bool, want ...point) {
	t.Helper()
	for _, p := range want {
		if !got[p] {
			t.Errorf("missing: %+v", p)
		}
		delete(got, p)
	}
	for p := range got {
		t.Errorf("unexpected: %+v", p)
	}
}
