// Command web serves HTTPS with OpenSSL, HTTP/2 included, and is its own client. docs/HTTP.md is the
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
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

func main() {
	cert, roots := selfSigned()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	server := &httptls.Server{Server: &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		Handler:   http.HandlerFunc(hello),
	}}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()

	client := must(httptls.NewClient(&http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}))
	resp := must(client.Get("https://" + listener.Addr().String()))
	body := must(io.ReadAll(resp.Body))
	resp.Body.Close()
	fmt.Printf("%s, %s: %s", resp.Proto, tls.VersionName(resp.TLS.Version), body)

	client.CloseIdleConnections()
	if err := server.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	if err := <-ended; err != http.ErrServerClosed {
		log.Fatal(err)
	}
}

func hello(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, "hello from", must(ossl.Library()).VersionText)
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
