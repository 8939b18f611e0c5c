package grpctls_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/grpctls"
)

// These make the server, the certificates and the service of the examples; a program has its own.
var (
	exampleCert = goodCert
	roots       = func() *x509.CertPool { return ca().pool() }
)

func exampleListener() net.Listener { return must(net.Listen("tcp", "127.0.0.1:0")) }

// hello calls the example's service.
func hello(conn *grpc.ClientConn) string {
	out := new(wrapperspb.BytesValue)
	if err := conn.Invoke(context.Background(), echoUnary, wrapperspb.Bytes([]byte("hello")), out); err != nil {
		return err.Error()
	}
	return string(out.Value)
}

// start serves the example's service until stop is called.
func start(server *grpc.Server) (target string, stop func()) {
	listener := exampleListener()
	server.RegisterService(&echoDesc, &echo{})
	go server.Serve(listener)
	return "passthrough:///" + listener.Addr().String(), server.Stop
}

func Example() {
	cert := exampleCert() // tls.LoadX509KeyPair
	server := grpc.NewServer(grpc.Creds(grpctls.NewServerTLSFromCert(&cert)))
	target, stop := start(server)
	defer stop()

	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(grpctls.NewTLS(&tls.Config{RootCAs: roots()})))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println(hello(conn))
	// Output: hello
}

// A channel, in one call. If the configuration can't be honoured, this call returns the error, not
// the first RPC.
func ExampleNewClient() {
	cert := exampleCert()
	target, stop := start(grpc.NewServer(grpc.Creds(grpctls.NewServerTLSFromCert(&cert))))
	defer stop()

	conn, err := grpctls.NewClient(target, &tls.Config{RootCAs: roots()})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println(hello(conn))
	// Output: hello
}

// Mutual TLS; a handler sees the caller's verified certificate.
func ExampleNew() {
	server, err := grpctls.New(&tls.Config{
		Certificates: []tls.Certificate{exampleCert()},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    roots(),
	}, ossl.WithSecurityLevel(2))
	if err != nil {
		log.Fatal(err)
	}
	caller := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		client, _ := peer.FromContext(ctx)
		fmt.Println(client.AuthInfo.(credentials.TLSInfo).State.VerifiedChains[0][0].Subject.CommonName)
		return handler(ctx, req)
	}
	target, stop := start(grpc.NewServer(grpc.Creds(server), grpc.UnaryInterceptor(caller)))
	defer stop()

	conn, err := grpctls.NewClient(target, &tls.Config{RootCAs: roots(), Certificates: []tls.Certificate{exampleCert()}})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println(hello(conn))
	// Output:
	// grpctls test
	// hello
}

// Credentials of a context that other connections use too.
func ExampleFromContext() {
	ctx, err := ossl.NewContext(&tls.Config{RootCAs: roots()}, ossl.WithHTTP2())
	if err != nil {
		log.Fatal(err)
	}
	cert := exampleCert()
	target, stop := start(grpc.NewServer(grpc.Creds(grpctls.NewServerTLSFromCert(&cert))))
	defer stop()

	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(grpctls.FromContext(ctx)))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println(hello(conn))
	// Output: hello
}
