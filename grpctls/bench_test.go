package grpctls_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/grpctls"
)

// The benchmarks compare gRPC's own credentials with ours in one run, over loopback TCP: the same
// keys, TLS 1.3, X25519, TLS_AES_128_GCM_SHA256. Keys, contexts and servers are made outside of the
// timer.

// benchImpls are the implementations as the benchmarks use them. crypto/tls lets nobody choose TLS
// 1.3 suites; with AES instructions it chooses AES-128-GCM, which newBench checks.
var benchImpls = []impl{std, {"ossl", func(c *tls.Config) credentials.TransportCredentials {
	return must(grpctls.New(c, ossl.WithTLS13CipherSuites(tls.TLS_AES_128_GCM_SHA256)))
}}}

func benchConfig(c *tls.Config) {
	c.MinVersion = tls.VersionTLS13
	c.CurvePreferences = []tls.CurveID{tls.X25519}
}

// benchPairings runs a benchmark in all four pairings, after it has checked the negotiated
// parameters.
func benchPairings(b *testing.B, bench func(b *testing.B, addr string, client credentials.TransportCredentials)) {
	for _, server := range benchImpls {
		for _, client := range benchImpls {
			b.Run(fmt.Sprintf("server=%s/client=%s", server.name, client.name), func(b *testing.B) {
				var negotiated tls.ConnectionState
				s := serve(b, server.creds(serverConfig(benchConfig)), &echo{stream: echoStrings})
				creds := client.creds(clientConfig(benchConfig, func(c *tls.Config) {
					c.VerifyConnection = func(state tls.ConnectionState) error {
						negotiated = state
						return nil
					}
				}))
				cc := dial(b, s.addr, creds)
				if _, err := call(context.Background(), cc, nil); err != nil {
					b.Fatal(err)
				}
				_ = cc.Close()
				if negotiated.Version != tls.VersionTLS13 || negotiated.CipherSuite != tls.TLS_AES_128_GCM_SHA256 ||
					negotiated.CurveID != tls.X25519 {
					b.Fatalf("not the same for all: %s, %s, %v", tls.VersionName(negotiated.Version),
						tls.CipherSuiteName(negotiated.CipherSuite), negotiated.CurveID)
				}
				b.ReportAllocs()
				bench(b, s.addr, client.creds(clientConfig(benchConfig)))
			})
		}
	}
}

// echoStrings echoes each message until the client has no more. Its messages are strings.
func echoStrings(stream grpc.ServerStream) error {
	for {
		m := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(m); err != nil {
			return ignoreEOF(err)
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
}

const (
	benchStreams  = 100
	benchMessages = 100_000 // of all streams together
)

// BenchmarkStreams passes 100,000 messages over 100 bidirectional streams of one connection in each
// iteration: every stream sends its 1,000 and receives their echoes at the same time.
func BenchmarkStreams(b *testing.B) {
	benchPairings(b, func(b *testing.B, addr string, creds credentials.TransportCredentials) {
		cc := dial(b, addr, creds)
		if err := streams(cc, benchStreams); err != nil { // the connection, and the buffers
			b.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for b.Loop() {
			if err := streams(cc, benchMessages); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		runtime.ReadMemStats(&after)
		messages := float64(b.N) * benchMessages
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/messages, "B/msg")
		b.ReportMetric(float64(after.Mallocs-before.Mallocs)/messages, "allocs/msg")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/messages, "ns/msg")
	})
}

// streams passes messages to and fro over benchStreams streams.
func streams(cc *grpc.ClientConn, messages int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	errs := make(chan error, 2*benchStreams)
	for range benchStreams {
		stream, err := cc.NewStream(ctx, &streamDesc, echoStream)
		if err != nil {
			return err
		}
		go func() {
			for n := range messages / benchStreams {
				if err := stream.SendMsg(wrapperspb.String(fmt.Sprintf("message %d", n))); err != nil {
					errs <- err
					return
				}
			}
			errs <- stream.CloseSend()
		}()
		go func() {
			m := new(wrapperspb.StringValue)
			for range messages / benchStreams {
				if err := stream.RecvMsg(m); err != nil {
					errs <- err
					return
				}
			}
			errs <- ignoreEOF(stream.RecvMsg(m))
		}()
	}
	for range 2 * benchStreams {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkPing is the time of one unary call while no other is under way.
func BenchmarkPing(b *testing.B) {
	benchPairings(b, func(b *testing.B, addr string, creds credentials.TransportCredentials) {
		cc := dial(b, addr, creds)
		message := []byte("PING\n")
		if _, err := call(context.Background(), cc, message); err != nil { // connects
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := call(context.Background(), cc, message); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkConnect is a new channel with its first call: the connection, the handshake, the call,
// and the close.
func BenchmarkConnect(b *testing.B) {
	benchPairings(b, func(b *testing.B, addr string, creds credentials.TransportCredentials) {
		for b.Loop() {
			cc, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds), grpc.WithNoProxy())
			if err != nil {
				b.Fatal(err)
			}
			if _, err := call(context.Background(), cc, nil); err != nil {
				b.Fatal(err)
			}
			if err := cc.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkIdle measures the cost of an idle connection: the Go heap of both sides, in bytes.
func BenchmarkIdle(b *testing.B) {
	const connections = 200
	benchPairings(b, func(b *testing.B, addr string, creds credentials.TransportCredentials) {
		heap := func() int64 {
			runtime.GC()
			runtime.GC() // memory that the first one leaves in pools
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		var used int64
		for b.Loop() {
			before := heap()
			var open []*grpc.ClientConn
			for range connections {
				cc := dial(b, addr, creds)
				if _, err := call(context.Background(), cc, nil); err != nil {
					b.Fatal(err)
				}
				open = append(open, cc)
			}
			used += heap() - before
			for _, cc := range open {
				if err := cc.Close(); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(used)/float64(b.N*connections), "B/conn")
	})
}
