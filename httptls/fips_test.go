package httptls_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// needFIPS skips a test if there is no FIPS module.
func needFIPS(t *testing.T) {
	t.Helper()
	lib, err := ossl.Library()
	if err != nil {
		t.Fatal(err)
	}
	if !lib.FIPS {
		t.Skipf("OpenSSL %s has no FIPS module here", lib.Version)
	}
}

// A server and a client in FIPS mode, which verify each other's certificates. The FIPS module does
// the cryptography of both, and each connection shows it.
func ExampleServer_fips() {
	cert, clientCert, authorities := *serverCert(), *clientCertificate(), pool() // a program's own

	server := &httptls.Server{
		Server: &http.Server{
			TLSConfig: &tls.Config{
				Certificates: []tls.Certificate{cert},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				ClientCAs:    authorities,
			},
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "hello %s by %s", r.TLS.VerifiedChains[0][0].Subject.CommonName, r.Proto)
			}),
		},
		Options: []ossl.Option{ossl.WithFIPS()}, // not needed with OSSL_FIPS=require, or on a host in FIPS mode
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.ServeTLS(l, "", "") }()
	defer server.Close()

	client, err := httptls.NewClient(&http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{clientCert}},
		ForceAttemptHTTP2: true,
	}, ossl.WithFIPS())
	if err != nil {
		log.Fatal(err) // wraps ossl.ErrNotFIPS, with the reason and the remedy
	}
	resp, err := client.Get("https://" + l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
}

// The example is run here, since not every OpenSSL has a FIPS module.
func TestFIPSExample(t *testing.T) {
	needFIPS(t)
	if got, want := printed(t, ExampleServer_fips), "hello httptls test client by HTTP/2.0 <nil>\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// printed returns the standard output of f.
func printed(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = stdout }()
	f() // prints less than a pipe holds
	os.Stdout = stdout
	_ = w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFIPSClientCAReloader(t *testing.T) {
	needFIPS(t)
	testClientCAReloader(t, &httptls.Server{Server: new(http.Server), Options: []ossl.Option{ossl.WithFIPS()}})
}

func TestFIPSTestServer(t *testing.T) {
	needFIPS(t)
	for _, opts := range [][]ossl.Option{{ossl.WithFIPS()}, nil} { // without an option, OSSL_FIPS=require decides
		var module string
		s := httptls.NewTestServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
		s.EnableHTTP2, s.Options = true, opts
		s.Config.ConnState = func(conn net.Conn, state http.ConnState) {
			if m := conn.(*ossl.Conn).FIPS(); m != nil && state == http.StateActive {
				module = m.String()
			}
		}
		if got := fetch(t, s.Client(), "https://www.example.com/"); got != "HTTP/2.0" {
			t.Errorf("%q", got)
		}
		s.Close()
		if required := opts != nil || os.Getenv("OSSL_FIPS") == "require"; strings.Contains(module, "running") != required {
			t.Errorf("module %q", module)
		}
	}
}
