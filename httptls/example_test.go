package httptls_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

func ExampleNewClient() {
	client, err := httptls.NewClient(nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Get("https://example.org/")
	if err == nil {
		_, _ = io.Copy(os.Stdout, resp.Body)
		_ = resp.Body.Close()
	}
}

// A client that looks at the OCSP responses that servers staple.
func ExampleCheckStaple() {
	client, err := httptls.NewClient(&http.Transport{TLSClientConfig: &tls.Config{VerifyConnection: httptls.CheckStaple}})
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Get("https://example.org/")
	if err != nil {
		log.Fatal(err)
	}
	_ = resp.Body.Close()
}

func ExampleNewTransport() {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13}
	base.TLSHandshakeTimeout = 5 * time.Second
	transport, err := httptls.NewTransport(base, ossl.WithSecurityLevel(3))
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httptls.WithHeaders(transport, func(h http.Header) { h.Set("User-Agent", "example") })}
	_ = client
}

func ExampleListenAndServeTLS() {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello by", r.Proto) })
	log.Fatal(httptls.ListenAndServeTLS(":443", "cert.pem", "key.pem", handler))
}

func ExampleServer() {
	server := &httptls.Server{Server: &http.Server{Addr: ":443", ReadHeaderTimeout: 10 * time.Second}}
	go func() {
		time.Sleep(time.Hour)
		_ = server.Shutdown(context.Background())
	}()
	log.Fatal(server.ListenAndServeTLS("cert.pem", "key.pem"))
}

// If Linux has kernel TLS, files go from the page cache to the network without passing through the
// process. HTTP/2 can't do that.
func ExampleServer_kernelTLS() {
	files := http.FileServer(http.Dir("/srv/files"))
	server := &httptls.Server{
		Server:  &http.Server{Addr: ":443", Handler: files, ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)},
		Options: []ossl.Option{ossl.WithKernelTLS()},
	}
	server.Protocols.SetHTTP1(true)
	log.Print("the kernel has TLS of versions ", ossl.KernelTLS())
	log.Fatal(server.ListenAndServeTLS("cert.pem", "key.pem"))
}

func ExampleReloader() {
	reloader, err := httptls.NewReloader("cert.pem", "key.pem")
	if err != nil {
		log.Fatal(err)
	}
	server := &httptls.Server{Server: &http.Server{TLSConfig: &tls.Config{GetCertificate: reloader.GetCertificate}}}
	log.Fatal(server.ListenAndServeTLS("", ""))
}

// A Context of the program's own checks pairs from the start.
func ExampleReloader_UsedBy() {
	reloader, err := httptls.NewReloader("cert.pem", "key.pem")
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{GetCertificate: reloader.GetCertificate, NextProtos: []string{"h2", "http/1.1"}}
	ctx, err := ossl.NewContext(config, ossl.WithSecurityLevel(3))
	if err != nil {
		log.Fatal(err)
	}
	if err := reloader.UsedBy(ctx); err != nil { // the server would start, but every handshake would fail
		log.Fatal(err)
	}
	l, err := ctx.Listen("tcp", ":443")
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(httptls.Serve(l, http.DefaultServeMux))
}

func ExampleServer_autocert() {
	manager := &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      autocert.DirCache("certificates"),
		HostPolicy: autocert.HostWhitelist("example.org"),
	}
	server := &httptls.Server{Server: &http.Server{Addr: ":443", TLSConfig: manager.TLSConfig()}}
	log.Fatal(server.ListenAndServeTLS("", ""))
}

// A client and a server with a certificate made here.
func Example() {
	server := &httptls.Server{Server: &http.Server{
		TLSConfig: serverConfig(),
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello by ", r.Proto) }),
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.ServeTLS(l, "", "") }()

	client, err := httptls.NewClient(&http.Transport{TLSClientConfig: clientConfig(), ForceAttemptHTTP2: true})
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Get("https://" + l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), resp.TLS.NegotiatedProtocol, err)
	_ = resp.Body.Close()
	client.CloseIdleConnections()
	_ = server.Shutdown(context.Background())
	// Output: hello by HTTP/2.0 h2 <nil>
}

// A test of a handler, over HTTP/2 and OpenSSL.
func ExampleNewTestServer() {
	test := func(t *testing.T) {
		server := httptls.NewTestServer(t, http.HandlerFunc(hello))
		server.EnableHTTP2 = true
		resp, err := server.Client().Get("https://example.com/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.Proto != "HTTP/2.0" {
			t.Error(resp.Proto)
		}
	}
	_ = test
}

// Two certificates, and authorities of clients, all from files that may change.
func ExampleNewClientCAReloader() {
	rsa, err := httptls.NewReloader("rsa.pem", "rsa.key")
	if err != nil {
		log.Fatal(err)
	}
	ecdsa, err := httptls.NewReloader("ecdsa.pem", "ecdsa.key")
	if err != nil {
		log.Fatal(err)
	}
	authorities, err := httptls.NewClientCAReloader("clients.pem")
	if err != nil {
		log.Fatal(err)
	}
	server := &httptls.Server{
		Server: &http.Server{Addr: ":443", TLSConfig: &tls.Config{
			GetCertificate: httptls.Reloaders{ecdsa, rsa}.GetCertificate,
			ClientAuth:     tls.RequireAndVerifyClientCert,
		}},
		ClientCAs: authorities,
	}
	log.Fatal(server.ListenAndServeTLS("", ""))
}
