//go:build linux

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/session"
)

// cached is how many sessions the servers' caches hold.
const cached = 10_000

// serving holds the flags of a server.
type serving struct{ stack, way, cert, key string }

// answer is the same for each request. Nothing parses requests: nginx does, for some microseconds.
var answer = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", requestSize,
	strings.Repeat("x", requestSize))

// open returns a way to make connections, and its name.
func (s serving) open() (wrap func(net.Conn) net.Conn, name string, err error) {
	cert, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, "", err
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: s.way == byID}
	switch s.stack {
	case stackOSSL:
		var options []ossl.Option
		if s.way == byID {
			options = append(options, ossl.WithSessionCache(session.NewCache(cached)))
		}
		ctx, err := ossl.NewContext(config, options...)
		if err != nil {
			return nil, "", err
		}
		lib, err := ossl.Library()
		if err != nil {
			return nil, "", err
		}
		return func(c net.Conn) net.Conn { return ctx.Server(c) }, lib.VersionText, nil
	case stackGo:
		return func(c net.Conn) net.Conn { return tls.Server(c, config) }, stackGo, nil
	}
	return nil, "", errors.New("no stack " + s.stack)
}

// serve is the program as a server. It prints its two addresses, of which the first is for
// connections without requests, and on the second line its TLS library. It ends with its standard
// input.
func serve(s serving) error {
	wrap, name, err := s.open()
	if err != nil {
		return err
	}
	var listeners [2]net.Listener
	for i := range listeners {
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
	}
	fmt.Printf("%s %s\n%s\n", listeners[0].Addr(), listeners[1].Addr(), name)
	failed := make(chan error)
	for i, l := range listeners {
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
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		failed <- nil
	}()
	return <-failed
}

// attend serves a connection until the client ends it.
func attend(conn net.Conn, requests bool) {
	defer conn.Close()
	if !requests {
		if c, ok := conn.(*ossl.Conn); ok && c.Handshake() == nil {
			_ = c.CloseWrite() // sends the tickets too: the client waits for one
		}
		_, _ = conn.Read(make([]byte, 64)) // the handshake, and then the client's end
		return
	}
	request := make([]byte, 2*requestSize)
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
