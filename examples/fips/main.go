// Command fips makes a mutual TLS connection in FIPS mode and prints the evidence. On a host without
// a FIPS module it prints the reason and the remedy, and fails. docs/FIPS.md is the guide.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"time"

	"github.com/ossl-go/ossl"
)

func main() {
	cert, roots := selfSigned()
	server, err := ossl.NewContext(&tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
	}, ossl.WithFIPS())
	if errors.Is(err, ossl.ErrNotFIPS) {
		log.Fatal("this host can't do it: ", err)
	} else if err != nil {
		log.Fatal(err)
	}
	client := must(ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots}, ossl.WithFIPS()))

	listener := must(server.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	go func() {
		conn := must(listener.Accept()).(*ossl.Conn)
		defer conn.Close()
		if err := conn.Handshake(); err != nil {
			log.Fatal(err)
		}
		fmt.Fprint(conn, "hello ", conn.ConnectionState().PeerCertificates[0].Subject.CommonName)
	}()
	conn := must(client.Dial("tcp", listener.Addr().String()))
	defer conn.Close()
	text := must(io.ReadAll(conn))
	state := conn.ConnectionState()
	fmt.Printf("%s with %s: %s\n", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite), text)
	fmt.Println(conn.FIPS())
}

// selfSigned makes a certificate for 127.0.0.1, and a pool that trusts it.
func selfSigned() (tls.Certificate, *x509.CertPool) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		Subject: pkix.Name{CommonName: "example"}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true,
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
