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

// Main makes a server and a client, connects them once over loopback TCP, echoes a few bytes, and
// exits.
func Main(listen func(network, addr string, config *tls.Config) (net.Listener, error),
	dial func(network, addr string, config *tls.Config) (io.ReadWriteCloser, error)) {
	if err := run(os.Args[1], listen, dial); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string, listen func(network, addr string, config *tls.Config) (net.Listener, error),
	dial func(network, addr string, config *tls.Config) (io.ReadWriteCloser, error)) error {
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile))
	if err != nil {
		return err
	}
	root, err := os.ReadFile(filepath.Join(dir, RootFile))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(root) {
		return errors.New("no certificate in " + RootFile)
	}
	l, err := listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- serve(l) }()
	conn, err := dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: ServerName})
	if err != nil {
		return err
	}
	echo := make([]byte, 5)
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, echo); err != nil {
		return err
	}
	return <-served
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
