// Command grpc serves gRPC with OpenSSL and mutual TLS, and is its own client. docs/GRPC.md is the
// guide.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"math/big"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/ossl-go/ossl/grpctls"
)

func main() {
	cert, roots := selfSigned()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	server := grpc.NewServer(grpc.Creds(must(grpctls.New(&tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
	}))))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() {
		if err := server.Serve(listener); err != nil {
			log.Fatal(err)
		}
	}()
	defer server.GracefulStop()

	// The same as grpc.NewClient, but an impossible configuration is an error here already.
	conn := must(grpctls.NewClient(listener.Addr().String(), &tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: roots,
	}))
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var from peer.Peer
	answer := must(grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Peer(&from)))
	state := from.AuthInfo.(credentials.TLSInfo).State
	fmt.Printf("%s, %s: %s\n", tls.VersionName(state.Version), state.NegotiatedProtocol, answer.Status)
}

// selfSigned makes a certificate for 127.0.0.1, and a pool that trusts it.
func selfSigned() (tls.Certificate, *x509.CertPool) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	roots := x509.NewCertPool()
	roots.AddCert(must(x509.ParseCertificate(der)))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
