package recipes

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// Dialer returns the dialer of the recipes. Not every driver bounds the time that a hook of its
// users takes, so the dialer does.
func Dialer(config *tls.Config) *ossl.Dialer {
	return &ossl.Dialer{Config: config, NetDialer: &net.Dialer{Timeout: 10 * time.Second}}
}

// HTTPClient returns the client of the recipes: with the proxies of the environment, HTTP/2, and
// timeouts.
func HTTPClient(config *tls.Config) (*http.Client, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = config
	return httptls.NewClient(base)
}

// Hook returns a function for drivers, in place of a Dialer's, that dials with the options of a
// Context.
func Hook(compiled *ossl.Context) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		conn, err := compiled.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err // and not conn, a nil *ossl.Conn, which as a net.Conn isn't nil
		}
		return conn, nil
	}
}
