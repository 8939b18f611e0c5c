// Command database gives a database client, go-redis, connections on OpenSSL, by its hook for
// dialing. The database is a stand-in that knows SET and GET.
package main

import (
	"bufio"
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
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl"
)

func main() {
	cert, roots := selfSigned()
	listener := must(ossl.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}}))
	go func() { serve(must(listener.Accept())) }()

	dialer := &ossl.Dialer{Config: &tls.Config{RootCAs: roots}}
	client := redis.NewClient(&redis.Options{Addr: listener.Addr().String(), Dialer: dialer.DialContext})
	defer client.Close()
	fmt.Println("SET", must(client.Set(context.Background(), "greeting", "hello", 0).Result()))
	fmt.Println("GET", must(client.Get(context.Background(), "greeting").Result()))
}

// serve answers as Redis does. A command is an array of strings, with lengths before them.
func serve(conn net.Conn) {
	values := map[string]string{}
	for in := bufio.NewReader(conn); ; {
		var words, length int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &words); err != nil {
			return // the client is gone
		}
		command := make([]string, words)
		for i := range command {
			must(fmt.Fscanf(in, "$%d\r\n", &length))
			word := make([]byte, length+len("\r\n"))
			must(io.ReadFull(in, word))
			command[i] = string(word[:length])
		}
		reply := "-ERR unknown command" // to questions about newer servers' features
		switch command[0] {
		case "set":
			values[command[1]], reply = command[2], "+OK"
		case "get":
			reply = "+" + values[command[1]]
		}
		fmt.Fprint(conn, reply, "\r\n")
	}
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
