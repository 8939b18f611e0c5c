package grpctls_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/grpctls"
)

// A server and a client in FIPS mode, which verify each other's certificates. The FIPS module does
// the cryptography of both.
func ExampleNew_fips() {
	// OSSL_FIPS=require, or a host in FIPS mode, make the option superfluous.
	server, err := grpctls.New(&tls.Config{
		Certificates: []tls.Certificate{exampleCert()},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    roots(),
	}, ossl.WithFIPS())
	if err != nil {
		log.Fatal(err) // wraps ossl.ErrNotFIPS, with the reason and the remedy
	}
	caller := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		client, _ := peer.FromContext(ctx)
		fmt.Println(client.AuthInfo.(credentials.TLSInfo).State.VerifiedChains[0][0].Subject.CommonName)
		return handler(ctx, req)
	}
	target, stop := start(grpc.NewServer(grpc.Creds(server), grpc.UnaryInterceptor(caller)))
	defer stop()

	client, err := grpctls.New(&tls.Config{RootCAs: roots(), Certificates: []tls.Certificate{exampleCert()}}, ossl.WithFIPS())
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(client))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println(hello(conn))
}

// The example is run here, since not every OpenSSL has a FIPS module.
func TestFIPSExample(t *testing.T) {
	lib, err := ossl.Library()
	if err != nil {
		t.Fatal(err)
	}
	if !lib.FIPS {
		t.Skipf("OpenSSL %s has no FIPS module here", lib.Version)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = stdout }()
	ExampleNew_fips() // prints less than a pipe holds
	os.Stdout = stdout
	_ = w.Close()
	if got, err := io.ReadAll(r); string(got) != "grpctls test\nhello\n" {
		t.Errorf("%q, %v", got, err)
	}
}
