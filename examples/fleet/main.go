// Command fleet shares sessions between servers through Redis or Valkey: a session that was made on
// one server resumes on the next, after the first has stopped. docs/SESSIONS.md is the guide.
//
//	fleet [ADDRESS OF THE STORE]
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/session"
	"github.com/ossl-go/ossl/session/redisstore"
)

func main() {
	address := append(os.Args[1:], "127.0.0.1:6379")[0]
	cert, roots := selfSigned()
	var secret session.Secret // the servers share it, and the store must not know it
	rand.Read(secret[:])
	client := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	for i, want := range []bool{false, true} {
		store := must(redisstore.New(redisstore.NewClient(redis.UniversalOptions{Addrs: []string{address}}),
			redisstore.Config{Secrets: []session.Secret{secret}, Timeout: time.Second}))
		conn := must(ossl.Dial("tcp", serve(cert, store), client))
		fmt.Printf("server %d: %s, ", i+1, must(io.ReadAll(conn))) // the session came before it
		resumed := conn.ConnectionState().DidResume
		fmt.Println("resumed", resumed)
		if err := store.Close(context.Background()); err != nil || resumed != want {
			log.Fatalf("want resumed %t: %v, %+v", want, err, store.Stats())
		}
	}
}

// serve starts a server for one connection and returns its address.
func serve(cert tls.Certificate, store session.Cache) string {
	server := must(ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{cert}}, ossl.WithSessionCache(store)))
	listener := must(server.Listen("tcp", "127.0.0.1:0"))
	go func() {
		conn := must(listener.Accept())
		defer conn.Close()
		fmt.Fprint(conn, "hello")
	}()
	return listener.Addr().String()
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
