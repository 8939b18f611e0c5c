//go:build !cgo && !ossl_nocgo

package ossl_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/keys"
)

// TestWithoutCgo checks that a program built without cgo gets ErrUnavailable from every
// constructor, or from the handshake if the constructor returns no error, and before anything is
// dialled. ci/test runs it with CGO_ENABLED=0.
func TestWithoutCgo(t *testing.T) {
	client := &tls.Config{ServerName: "localhost", MinVersion: tls.VersionTLS12}
	server := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close() // dialling it fails with another error

	const sentence = "this program was built without cgo, which is needed to load a C library: build it " +
		"with CGO_ENABLED=1 and a C compiler, or import github.com/ossl-go/ossl/nocgo (Linux, amd64 and arm64)"
	doc, err := os.ReadFile("docs/ERRORS.md")
	if err != nil || !strings.Contains(string(doc), sentence) {
		t.Errorf("docs/ERRORS.md lacks the text: %v", err)
	}

	constructors := map[string]func() error{
		"Library":    func() error { _, err := ossl.Library(); return err },
		"NewContext": func() error { _, err := ossl.NewContext(client); return err },
		"LoadKey":    func() error { _, err := keys.Load("key.pem", keys.WithProvider("pkcs11")); return err },
		"LoadX509KeyPair": func() error {
			_, err := keys.LoadX509KeyPair("cert.pem", "key.pem")
			return err
		},
		"Dial": func() error { _, err := ossl.Dial("tcp", address, client); return err },
		"DialWithDialer": func() error {
			_, err := ossl.DialWithDialer(new(net.Dialer), "tcp", address, client)
			return err
		},
		"Dialer": func() error {
			_, err := (&ossl.Dialer{Config: client}).DialContext(context.Background(), "tcp", address)
			return err
		},
		"Client": func() error {
			a, b := net.Pipe()
			defer a.Close()
			defer b.Close()
			return ossl.Client(a, client).Handshake()
		},
		"Server": func() error {
			a, b := net.Pipe()
			defer a.Close()
			defer b.Close()
			return ossl.Server(a, server).Handshake()
		},
		"Listen": func() error {
			l, err := ossl.Listen("tcp", "127.0.0.1:0", server)
			if err == nil {
				l.Close()
			}
			return err
		},
	}
	for name, constructor := range constructors {
		t.Run(name, func(t *testing.T) {
			err := constructor()
			if !errors.Is(err, ossl.ErrUnavailable) {
				t.Fatalf("error %v; want one that is ErrUnavailable", err)
			}
			// One sentence with the remedy, as docs/ERRORS.md has it.
			if text := err.Error(); !strings.HasSuffix(text, ": "+sentence) || strings.Count(text, sentence) != 1 {
				t.Errorf("the text is %q", text)
			}
		})
	}
}
