//go:build linux

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/session"
)

// cached is how many sessions the servers' caches hold.
const cached = 10_000

// serve is the program as a server: it makes handshakes, and ends connections when the client does.
// It prints its address and, on the second line, its TLS library, and ends with its standard input.
func serve(stack, way, certFile, keyFile string) error {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: way == byID}
	var listen func(net.Listener) net.Listener
	var name string
	switch stack {
	case stackOSSL:
		var options []ossl.Option
		if way == byID {
			options = append(options, ossl.WithSessionCache(session.NewCache(cached)))
		}
		ctx, err := ossl.NewContext(config, options...)
		if err != nil {
			return err
		}
		lib, err := ossl.Library()
		if err != nil {
			return err
		}
		listen, name = ctx.NewListener, lib.VersionText
	case stackGo:
		listen = func(l net.Listener) net.Listener { return tls.NewListener(l, config) }
		name = stackGo
	default:
		return errors.New("no stack " + stack)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%s\n", l.Addr(), name)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	l = listen(l)
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			if c, ok := conn.(*ossl.Conn); ok && c.Handshake() == nil {
				_ = c.CloseWrite() // sends the tickets too: the client waits for one
			}
			_, _ = conn.Read(make([]byte, 64)) // the handshake, and then the client's end
		}()
	}
}
