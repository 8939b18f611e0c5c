//go:build cgo || ossl_nocgo

package handover_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl/handover"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestSendWebSockets: the server of the example moves its clients while they send. Both Servers are
// in this process.
func TestSendWebSockets(t *testing.T) {
	if ossltest.RecordsByLibssl() {
		t.Skip("OSSL_RECORDS=libssl: libssl has the records")
	}
	ctx, cancel := context.WithTimeout(t.Context(), tlstest.Patience)
	defer cancel()
	server := ossltest.NewContext(t, tlstest.ServerConfig())
	s := &handover.Server{Context: server, Serve: serveWebSocket}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Accept(l)
	listeners := []net.Listener{l}
	defer func() { listeners[0].Close() }()

	stop := make(chan struct{})
	var answers atomic.Int64
	var clients sync.WaitGroup
	for i := range 20 {
		clients.Go(func() {
			for done := false; !done; { // a connection for at most 50 messages, so that new ones are made all the time
				n, ended, err := talk(l.Addr().String(), i, stop)
				if answers.Add(int64(n)); err != nil {
					t.Error(err)
				}
				done = ended || err != nil
			}
		})
	}
	for move := range 10 {
		want := answers.Load() + 100
		tlstest.WaitUntil(t, func() bool { return answers.Load() >= want || ctx.Err() != nil })
		a, b := joined(t)
		next := &handover.Server{Context: server, Serve: serveWebSocket}
		received := make(chan error, 1)
		go func() {
			r, err := handover.NewReceiver(ctx, b)
			if err == nil {
				listeners, err = next.Receive(ctx, r)
			}
			received <- err
		}()
		sender, err := handover.NewSender(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(ctx, sender, listeners...); err != nil {
			t.Fatalf("move %d: %v", move, err)
		}
		if err := <-received; err != nil {
			t.Fatalf("move %d: %v", move, err)
		}
		if counts := sender.Counts(); counts.Connections == 0 || counts.Lost != 0 {
			t.Errorf("move %d: %+v", move, counts)
		}
		s = next
	}
	close(stop)
	clients.Wait()
}

// talk opens a WebSocket, and sends up to 50 messages, which must come back. It returns their
// number, and whether stop is closed.
func talk(addr string, client int, stop <-chan struct{}) (n int, stopped bool, err error) {
	conn, err := tls.Dial("tcp", addr, tlstest.ClientConfig())
	if err != nil {
		return 0, false, err
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: server.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, false, err
	}
	if got := response.Header.Get("Sec-WebSocket-Accept"); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" { // RFC 6455's example
		return 0, false, fmt.Errorf("Sec-WebSocket-Accept: %q", got)
	}
	for ; n < 50; n++ {
		select {
		case <-stop:
			return n, true, nil
		default:
		}
		text := fmt.Appendf(nil, "message %d of client %d", n, client)
		mask := [4]byte{byte(rand.IntN(256)), 2, 3, 4}
		frame := append([]byte{0x81, 0x80 | byte(len(text))}, mask[:]...)
		for i, b := range text {
			frame = append(frame, b^mask[i%4])
		}
		cut := rand.IntN(len(frame)) // in two records
		if _, err := conn.Write(frame[:cut]); err != nil {
			return n, false, err
		}
		if _, err := conn.Write(frame[cut:]); err != nil {
			return n, false, err
		}
		got := make([]byte, 2+len(text))
		if _, err := io.ReadFull(in, got); err != nil {
			return n, false, err
		}
		if want := append([]byte{0x81, byte(len(text))}, text...); !bytes.Equal(got, want) {
			return n, false, fmt.Errorf("%q in place of %q", got, want)
		}
	}
	return n, false, nil
}
