package recipes

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
	"github.com/valyala/fasthttp"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// Serve serves HTTP, WebSocket and Connect: handlers of gorilla/websocket, coder/websocket and
// connect-go work as with net/http.
func Serve(l net.Listener, config *tls.Config, handler http.Handler) error {
	server := &httptls.Server{Server: &http.Server{
		Handler: handler, TLSConfig: config, ReadHeaderTimeout: 10 * time.Second,
	}}
	return server.ServeTLS(l, "", "")
}

// Gorilla connects to a URL such as wss://example.org/: gorilla/websocket.
func Gorilla(ctx context.Context, url string, dialer *ossl.Dialer) (*gorilla.Conn, error) {
	websocket := &gorilla.Dialer{NetDialTLSContext: dialer.DialContext}
	conn, _, err := websocket.DialContext(ctx, url, nil)
	return conn, err
}

// Coder connects to a URL such as wss://example.org/: coder/websocket.
func Coder(ctx context.Context, url string, config *tls.Config) (*coder.Conn, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig, base.ForceAttemptHTTP2 = config, false
	client, err := httptls.NewClient(base)
	if err != nil {
		return nil, err
	}
	conn, _, err := coder.Dial(ctx, url, &coder.DialOptions{HTTPClient: client})
	return conn, err
}

// FastHTTP returns a client that has TLS for https URLs alone.
func FastHTTP(dialer *ossl.Dialer) *fasthttp.Client {
	return &fasthttp.Client{ConfigureClient: func(host *fasthttp.HostClient) error {
		if host.IsTLS { // fasthttp adds no TLS to a connection that has a Handshake method
			host.Dial = func(addr string) (net.Conn, error) { return dialer.Dial("tcp", addr) }
		}
		return nil
	}}
}

// FastHTTPServe serves HTTP/1.1. The handler's IsTLS and TLSConnectionState work.
func FastHTTPServe(l net.Listener, config *tls.Config, handler fasthttp.RequestHandler) error {
	server := &fasthttp.Server{Handler: handler, ReadTimeout: 10 * time.Second}
	return server.Serve(ossl.NewListener(l, config))
}
