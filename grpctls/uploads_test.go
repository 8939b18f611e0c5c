package grpctls_test

import (
	"crypto/tls"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// In TestClientStream, a client sends a stream, half-closes it, and waits only for the call's
// status, which confirms that the stream has arrived. Then it closes its connection; the next one
// resumes, by a ticket that came with HTTP/2's settings.
func TestClientStream(t *testing.T) {
	const messages, size = 200, 10_000
	pairings(t, func(t *testing.T, server, client impl) {
		type upload struct {
			bytes   int
			resumed bool
			err     error
		}
		sent, uploads := make(chan struct{}, 1), make(chan upload, 1)
		tickets := func(c *tls.Config) { c.SessionTicketsDisabled = false }
		s := serve(t, server.creds(serverConfig(mutual, tickets)), &echo{stream: func(stream grpc.ServerStream) error {
			var u upload
			if p, ok := peer.FromContext(stream.Context()); ok {
				u.resumed = p.AuthInfo.(credentials.TLSInfo).State.DidResume
			}
			for m := new(wrapperspb.BytesValue); u.err == nil; u.bytes += len(m.Value) {
				m.Reset()
				u.err = stream.RecvMsg(m)
			}
			<-sent
			uploads <- u
			return nil
		}})
		creds := client.creds(clientConfig(clientCert(nil), func(c *tls.Config) {
			c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		}))
		for i := range 3 {
			cc := dial(t, s.addr, creds)
			stream, err := cc.NewStream(soon(t), &streamDesc, echoStream)
			if err != nil {
				t.Fatal(err)
			}
			for range messages {
				if err := stream.SendMsg(wrapperspb.Bytes(make([]byte, size))); err != nil {
					t.Fatal(err)
				}
			}
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			sent <- struct{}{}
			if err := stream.RecvMsg(new(wrapperspb.BytesValue)); err != io.EOF {
				t.Fatal(err)
			}
			if err := cc.Close(); err != nil {
				t.Fatal(err)
			}
			if u := await(t, "the stream", uploads); u.bytes != messages*size || u.err != io.EOF || u.resumed != (i > 0) {
				t.Errorf("call %d: %d of %d bytes, %v, resumed: %v", i+1, u.bytes, messages*size, u.err, u.resumed)
			}
		}
	})
}
