//go:build unix

package handover_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/handover"
)

// A WebSocket server that replaces itself at SIGUSR2, and goes on with all its clients.
func Example_webSocket() {
	upgrade := make(chan os.Signal, 1)
	signal.Notify(upgrade, syscall.SIGUSR2)
	server, err := ossl.NewContext(&tls.Config{}) // with the server's certificate
	if err != nil {
		log.Fatal(err)
	}
	s := &handover.Server{Context: server, Serve: serveWebSocket}
	listeners, err := s.Inherit(context.Background())
	if err != nil {
		log.Print(err) // the old process has died: serve the connections that have arrived
	}
	if listeners == nil {
		l, err := net.Listen("tcp", "127.0.0.1:8443")
		if err != nil {
			log.Fatal(err)
		}
		go s.Accept(l)
		listeners = append(listeners, l)
	}
	<-upgrade
	if _, err := s.Replace(context.Background(), exec.Command("/proc/self/exe"), listeners...); err != nil {
		log.Fatal(err)
	}
}

// serveWebSocket sends back each message of at most 125 bytes. A message stays in the buffer until its
// answer is written, so the rest of the buffer is all that the next process needs.
func serveWebSocket(conn *ossl.Conn, data []byte) []byte {
	in := bufio.NewReader(io.MultiReader(bytes.NewReader(data), conn))
	for {
		n, answer, err := nextWebSocketAnswer(in)
		if err == nil {
			_, err = conn.Write(answer)
		}
		if err != nil {
			rest, _ := in.Peek(in.Buffered())
			return rest
		}
		in.Discard(n)
	}
}

// nextWebSocketAnswer returns the answer to the next message or to the HTTP request before all
// messages, of n bytes.
func nextWebSocketAnswer(in *bufio.Reader) (n int, answer []byte, err error) {
	head, err := in.Peek(6)
	if err != nil {
		return 0, nil, err
	}
	if head[0] != 'G' {
		n = 6 + int(head[1]&127)
		frame, err := in.Peek(n)
		if err == nil {
			answer = append(answer, frame[0], byte(n-6))
			for i, b := range frame[6:] {
				answer = append(answer, b^frame[2+i%4])
			}
		}
		return n, answer, err
	}
	for n = 6; !bytes.HasSuffix(head, []byte("\r\n\r\n")); n++ {
		if head, err = in.Peek(n); err != nil {
			return 0, nil, err
		}
	}
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return 0, nil, err
	}
	sum := sha1.Sum([]byte(request.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return len(head), fmt.Appendf(nil, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:])), nil
}
