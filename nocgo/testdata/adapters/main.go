// Command adapters makes a handshake with a store of sessions, metrics and spans: ci/nocgo builds it without cgo.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
	_ "github.com/ossl-go/ossl/nocgo"
	"github.com/ossl-go/ossl/otelossl"
	"github.com/ossl-go/ossl/promossl"
	"github.com/ossl-go/ossl/session"
	"github.com/ossl-go/ossl/session/redisstore"
)

func main() {
	store := must(redisstore.New(redisstore.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}}), // nobody listens
		redisstore.Config{Secrets: []session.Secret{{1: 42}}}))
	spans := must(otelossl.New(metrics.Process))
	defer spans.Close()
	counts := prometheus.NewRegistry()
	counts.MustRegister(promossl.NewCollector(metrics.Process))

	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	roots := x509.NewCertPool()
	roots.AddCert(must(x509.ParseCertificate(der)))
	server := must(ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		ossl.WithSessionCache(store), spans.Events("server")))
	client := must(ossl.NewContext(&tls.Config{RootCAs: roots, ServerName: "localhost"}))

	a, b := net.Pipe()
	ended := make(chan error)
	go func() { ended <- server.Server(a).Handshake() }()
	if err := client.Client(b, "").Handshake(); err != nil {
		panic(err)
	}
	if err := <-ended; err != nil {
		panic(err)
	}
	fmt.Println(must(ossl.Library()).VersionText+":", len(must(counts.Gather())), "families of metrics")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
