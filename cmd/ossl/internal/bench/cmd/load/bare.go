//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/session"
)

// cached is how many sessions the servers' caches hold.
const cached = 10_000

// serving holds the flags of a bare server.
type serving struct {
	stack, way, cert, key, ports string
	shared                       bool // the ports and the ticket key, among several processes
}

// listening is the output of a bare server that listens.
const listening = "listening"

// bareRequest is the size of requests.
const bareRequest = 1024

// answer is the same for each request. Nothing parses requests: nginx does, for some microseconds.
var answer = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", smallFile,
	strings.Repeat("x", smallFile))

// open returns a way to make connections.
func (s serving) open() (wrap func(net.Conn) net.Conn, err error) {
	cert, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: s.way == byID}
	if s.shared {
		config.SetSessionTicketKeys([][32]byte{{1}})
	}
	if s.stack == stackStd {
		return func(c net.Conn) net.Conn { return tls.Server(c, config) }, nil
	}
	var options []ossl.Option
	if s.way == byID {
		options = append(options, ossl.WithSessionCache(session.NewCache(cached)))
	}
	ctx, err := ossl.NewContext(config, options...)
	if err != nil {
		return nil, err
	}
	return func(c net.Conn) net.Conn { return ctx.Server(c) }, nil
}

// serve is the program as a server. It listens at two ports, of which the first is for connections
// without requests, and runs until a signal stops it.
func serve(s serving) error {
	wrap, err := s.open()
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i, port := range strings.Split(s.ports, ",") {
		l, err := s.listen("127.0.0.1:" + port)
		if err != nil {
			return err
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					failed <- err
					return
				}
				go attend(wrap(conn), i == 1)
			}
		}()
	}
	fmt.Println(listening)
	return <-failed
}

func (s serving) listen(address string) (net.Listener, error) {
	var config net.ListenConfig
	if s.shared {
		config.Control = func(_, _ string, conn syscall.RawConn) (err error) {
			if failed := conn.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			}); failed != nil {
				return failed
			}
			return err
		}
	}
	return config.Listen(context.Background(), "tcp", address)
}

// attend serves a connection until the client closes it.
func attend(conn net.Conn, requests bool) {
	defer conn.Close()
	if !requests {
		if c, ok := conn.(*ossl.Conn); ok && c.Handshake() == nil {
			_ = c.CloseWrite() // sends the tickets too: the client waits for one
		}
		_, _ = conn.Read(make([]byte, 64)) // the handshake, and then the client's end
		return
	}
	request := make([]byte, 2*bareRequest)
	for n := 0; n < len(request); {
		k, err := conn.Read(request[n:])
		if err != nil {
			return
		}
		if n += k; bytes.HasSuffix(request[:n], []byte("\r\n\r\n")) {
			if _, err := conn.Write(answer); err != nil {
				return
			}
			n = 0
		}
	}
}
