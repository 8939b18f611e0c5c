// Command testserver serves requests of ci/http-interop, on either stack.
//
//	testserver -certs DIR                      write ca.pem, and ecdsa.pem and rsa.pem with their .key files
//	testserver -stack ossl -cert F -key F      serve and print host:port, for ten minutes at most
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ossl-go/ossl/httptls"
)

func main() {
	certs := flag.String("certs", "", "folder to write certificates to")
	stack := flag.String("stack", "ossl", "ossl or nethttp")
	cert := flag.String("cert", "", "certificate file")
	key := flag.String("key", "", "key file")
	flag.Parse()
	var err error
	if *certs != "" {
		err = writeCerts(*certs)
	} else {
		err = serve(*stack, *cert, *key)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// lifetime is the time after which servers exit that a script has left behind.
const lifetime = 10 * time.Minute

// page is 1 KB, as are the pages of the benchmarks.
var page = []byte(strings.Repeat("a page of some text.\n", 49)[:1024])

func serve(stack, cert, key string) error {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(w, r.Body)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(page)
	})
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	// Both stacks choose the same, and resume nothing.
	hs := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{pair}, SessionTicketsDisabled: true,
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256},
	}}
	var server interface {
		ServeTLS(l net.Listener, cert, key string) error
	}
	switch stack {
	case "ossl":
		server = &httptls.Server{Server: hs}
	case "nethttp":
		server = hs
	default:
		return errors.New("no stack " + stack)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	time.AfterFunc(lifetime, func() { os.Exit(0) })
	return server.ServeTLS(l, "", "")
}

func writeCerts(dir string) error {
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour)}
	}
	ec := func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }
	caKey, err := ec()
	if err != nil {
		return err
	}
	ca := template(1, "httptls test authority")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, "ca.pem"), "CERTIFICATE", der); err != nil {
		return err
	}
	for i, kind := range []string{"ecdsa", "rsa"} {
		key, err := ec()
		if kind == "rsa" {
			key, err = rsa.GenerateKey(rand.Reader, 2048)
		}
		if err != nil {
			return err
		}
		leaf := template(int64(i)+2, "localhost")
		leaf.DNSNames, leaf.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
		leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if der, err = x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey); err != nil {
			return err
		}
		if err := writePEM(filepath.Join(dir, kind+".pem"), "CERTIFICATE", der); err != nil {
			return err
		}
		if der, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			return err
		}
		if err := writePEM(filepath.Join(dir, kind+".key"), "PRIVATE KEY", der); err != nil {
			return err
		}
	}
	return nil
}

func writePEM(name, kind string, der []byte) error {
	return os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
