// Package startup is the work of the programs whose start is measured (BenchmarkStart): they differ in
// the TLS implementation that they are linked with.
package startup

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
)

// ServerName is the name in the certificate.
const ServerName = "bench.example"

// The files in the folder that the programs get as their argument.
const (
	CertFile = "cert.pem"
	KeyFile  = "key.pem"
	RootFile = "root.pem"
)

// Main exits at once if the program has no arguments. With the folder as its argument, it makes a
// server and a client, connects them once over loopback TCP, and echoes a few bytes. With a server's
// address after the folder, it makes the client alone.
func Main(listen listener, dial dialer) {
	var err error
	switch len(os.Args) {
	case 1:
	case 2:
		err = pair(os.Args[1], listen, dial)
	default:
		err = client(os.Args[1], os.Args[2], dial)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type (
	listener = func(network, addr string, config *tls.Config) (net.Listener, error)
	dialer   = func(network, addr string, config *tls.Config) (io.ReadWriteCloser, error)
)

func pair(dir string, listen listener, dial dialer) error {
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile))
	if err != nil {
		return err
	}
	l, err := listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- serve(l) }()
	if err := client(dir, l.Addr().String(), dial); err != nil {
		return err
	}
	return <-served
}

func client(dir, addr string, dial dialer) error {
	root, err := os.ReadFile(filepath.Join(dir, RootFile))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(root) {
		return errors.New("no certificate in " + RootFile)
	}
	conn, err := dial("tcp", addr, &tls.Config{RootCAs: roots, ServerName: ServerName})
	if err != nil {
		return err
	}
	echo := make([]byte, 5)
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, echo)
	return err
}

func serve(l net.Listener) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(conn, b); err != nil {
		return err
	}
	_, err = conn.Write(b)
	return err
}
