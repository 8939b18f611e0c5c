package grpctls_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/grpc"
)

// many returns n, or about a tenth of it with -short.
func many(n int) int {
	if testing.Short() {
		return n/10 + 1
	}
	return n
}

// TestBigMessages passes 16 MB to and fro.
func TestBigMessages(t *testing.T) {
	size := many(16) << 20
	message := make([]byte, size)
	_, _ = rand.Read(message)
	sum := sha256.Sum256(message)
	pairings(t, func(t *testing.T, server, client impl) {
		s := serve(t, server.creds(serverConfig()), nil, grpc.MaxRecvMsgSize(2*size), grpc.MaxSendMsgSize(2*size))
		cc := dial(t, s.addr, client.creds(clientConfig()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*size), grpc.MaxCallSendMsgSize(2*size)))
		got, err := call(soon(t), cc, message)
		if err != nil || sha256.Sum256(got) != sum {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

// TestManyStreams keeps 1,000 streams open at a time on one connection.
func TestManyStreams(t *testing.T) {
	streams := many(1000)
	pairings(t, func(t *testing.T, server, client impl) {
		cc := dial(t, serve(t, server.creds(serverConfig()), nil).addr, client.creds(clientConfig()))
		ctx := soon(t)
		open := make([]grpc.ClientStream, streams)
		for i := range open {
			open[i] = openStream(t, ctx, cc)
		}
		for i, stream := range open {
			if err := exchange(stream, fmt.Appendf(nil, "stream %d", i)); err != nil {
				t.Fatal(err)
			}
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestStreamsAtOnce sends messages of all sizes on 100 streams at once.
func TestStreamsAtOnce(t *testing.T) {
	streams, messages := many(100), 50
	pairings(t, func(t *testing.T, server, client impl) {
		cc := dial(t, serve(t, server.creds(serverConfig()), nil).addr, client.creds(clientConfig()))
		ctx := soon(t)
		var wg sync.WaitGroup
		for i := range streams {
			stream, err := cc.NewStream(ctx, &streamDesc, echoStream)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				for n := range messages {
					if err := exchange(stream, bytes.Repeat([]byte{byte(i + n)}, (i*messages+n)*3)); err != nil {
						t.Errorf("stream %d, message %d: %v", i, n, err)
						return
					}
				}
				_ = stream.CloseSend()
			})
		}
		wg.Wait()
	})
}
