package measure

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
	"github.com/ossl-go/ossl/httptls"
)

func requests(bool) []*Row {
	row := func(name, key string, http2, anew bool) *Row {
		return &Row{Name: name, Benchmark: "Get/" + key, Unit: PerSecond, make: func(ends Ends) (bench.Measure, error) {
			return newRequests(ends, http2, anew)
		}}
	}
	return []*Row{
		row("HTTP/1.1, connection kept", "proto=h1/kept=true", false, false),
		row("HTTP/2, connection kept", "proto=h2/kept=true", true, false),
		row("HTTP/1.1, new connections, ECDSA", "proto=h1/kept=false", false, true),
	}
}

var page = bytes.Repeat([]byte("0123456789abcdef"), 64)

// httpRequests measures requests, one after the other, over loopback: with net/http, or with
// httptls in the client and the server.
type httpRequests struct {
	client *http.Client
	url    string
	stop   func() error
	ops    int
}

func newRequests(ends Ends, http2, anew bool) (bench.Measure, error) {
	id, err := throwAway()
	if err != nil {
		return nil, err
	}
	kex := []tls.CurveID{bench.DefaultKex()}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	server := &http.Server{Handler: handler, Protocols: protocols, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{id.cert}, CurvePreferences: kex, SessionTicketsDisabled: true}}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: id.roots, CurvePreferences: kex}, Protocols: protocols,
		DisableKeepAlives: anew, DisableCompression: true}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &httpRequests{url: "https://" + listener.Addr().String() + "/"}
	r.client = &http.Client{Transport: transport}
	if ends.Client == bench.OSSL {
		if r.client, err = httptls.NewClient(transport); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
	}
	serve := server.ServeTLS
	r.stop = server.Close
	if ends.Server == bench.OSSL {
		ours := &httptls.Server{Server: server}
		serve, r.stop = ours.ServeTLS, ours.Close
	}
	go func() { _ = serve(listener, "", "") }()
	if err := r.Do(); err != nil {
		_, closeErr := r.Close()
		return nil, errors.Join(err, closeErr)
	}
	return r, nil
}

func (r *httpRequests) Prepare() (int, error) { return int(^uint(0) >> 1), nil }

func (r *httpRequests) Do() error {
	resp, err := r.client.Get(r.url)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, resp.Body)
	err = errors.Join(err, resp.Body.Close())
	if err == nil && n != int64(len(page)) {
		err = fmt.Errorf("an answer of %d bytes", n)
	}
	r.ops++
	return err
}

func (r *httpRequests) Close() (int, error) {
	r.client.CloseIdleConnections()
	return r.ops, r.stop()
}

// An identity is a certificate for 127.0.0.1 with an ECDSA key, and a pool that trusts it.
type identity struct {
	cert  tls.Certificate
	roots *x509.CertPool
}

var throwAway = sync.OnceValues(func() (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, roots}, nil
})
