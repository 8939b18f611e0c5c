package httptls_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// The documentation of ossl.Listen and of ossl.Dialer describes how net/http uses an *ossl.Conn,
// before Go 1.27 and from then on, and that this package has neither limit.

// mutualConfig is for servers that ask for a certificate, and for clients that have one.
func mutualConfig(protos ...string) *tls.Config {
	cert := *leaf(ecKey())
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: pool(), ServerName: "localhost", ClientAuth: tls.RequireAnyClientCert,
		NextProtos: protos,
	}
}

type serveFunc = func(net.Listener, http.Handler) error

// serveAndGet serves the connections of l, and returns the answer that a client gets: the protocol
// and the request's TLS state.
func serveAndGet(t *testing.T, l net.Listener, serve serveFunc, client *http.Client) (string, error) {
	t.Helper()
	served := make(chan error, 1)
	go func() {
		served <- serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s complete=%v certificates=%d", r.Proto, r.TLS.HandshakeComplete, len(r.TLS.PeerCertificates))
			if conn, ok := r.Context().Value(connKey{}).(*ossl.Conn); ok && len(conn.ConnectionState().PeerCertificates) != 1 {
				t.Error("the connection in ConnContext has no peer certificate")
			}
		}))
	}()
	defer func() {
		client.CloseIdleConnections()
		_ = l.Close()
		if err := await(t, "Serve to return", served); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	}()
	resp, err := client.Get("https://" + l.Addr().String())
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func quietServe(l net.Listener, handler http.Handler) error {
	keep := func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	return (&http.Server{Handler: handler, ErrorLog: discardLog, ConnContext: keep}).Serve(l)
}

type connKey struct{}

func TestNetHTTPServesListener(t *testing.T) {
	const blind, seen = " complete=false certificates=0", " complete=true certificates=1"
	for _, test := range []struct {
		name          string
		protos        []string
		serve         func(net.Listener, http.Handler) error
		before, after string // the answers before Go 1.27 and from then on; "" for an error
	}{
		{"net/http, HTTP/1.1", []string{"http/1.1"}, quietServe, "HTTP/1.1" + blind, "HTTP/1.1" + seen},
		{"net/http, no protocols", nil, quietServe, "HTTP/1.1" + blind, "HTTP/1.1" + seen},
		{"net/http, HTTP/2", []string{"h2", "http/1.1"}, quietServe, "", "HTTP/2.0" + seen},
		{"httptls, HTTP/1.1", []string{"http/1.1"}, httptls.Serve, "HTTP/1.1" + seen, "HTTP/1.1" + seen},
		{"httptls, HTTP/2", []string{"h2", "http/1.1"}, httptls.Serve, "HTTP/2.0" + seen, "HTTP/2.0" + seen},
	} {
		want := test.before
		if native {
			want = test.after
		}
		t.Run(test.name, func(t *testing.T) {
			l, err := ossl.Listen("tcp", "127.0.0.1:0", mutualConfig(test.protos...))
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: mutualConfig(), ForceAttemptHTTP2: true}}
			got, err := serveAndGet(t, l, test.serve, client)
			if got != want || (err != nil) != (want == "") {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		})
	}
}

func TestNetHTTPUsesDialer(t *testing.T) {
	dialer := func(protos ...string) func(context.Context, string, string) (net.Conn, error) {
		return (&ossl.Dialer{Config: mutualConfig(protos...)}).DialContext
	}
	httptlsTransport, err := httptls.NewTransport(&http.Transport{TLSClientConfig: mutualConfig(), ForceAttemptHTTP2: true})
	if err != nil {
		t.Fatal(err)
	}
	const seen = " complete=true certificates=1"
	for name, test := range map[string]struct {
		transport     http.RoundTripper
		before, after string
	}{
		"net/http, HTTP/1.1": {&http.Transport{DialTLSContext: dialer("http/1.1"), ForceAttemptHTTP2: true},
			"HTTP/1.1" + seen, "HTTP/1.1" + seen},
		"net/http, HTTP/2": {&http.Transport{DialTLSContext: dialer("h2", "http/1.1"), ForceAttemptHTTP2: true},
			"", "HTTP/2.0" + seen},
		"httptls": {httptlsTransport, "HTTP/2.0" + seen, "HTTP/2.0" + seen},
	} {
		want := test.before
		if native {
			want = test.after
		}
		t.Run(name, func(t *testing.T) {
			l, err := tls.Listen("tcp", "127.0.0.1:0", mutualConfig("h2", "http/1.1"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := serveAndGet(t, l, quietServe, &http.Client{Transport: test.transport})
			if got != want || (err != nil) != (want == "") {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		})
	}
}
