package caddy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/ossl-go/ossl/httptls"
	"github.com/ossl-go/ossl/keys"
)

// A Transport is the module http.reverse_proxy.transport.ossl: TLS to upstreams.
type Transport struct {
	CA          string `json:"ca,omitempty"`          // of the upstreams; the system's if empty
	Certificate string `json:"certificate,omitempty"` // for the upstreams, with Key
	Key         string `json:"key,omitempty"`

	*httptls.Transport `json:"-"`
}

// CaddyModule implements caddy.Module.
func (Transport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.transport.ossl", New: func() caddy.Module { return new(Transport) }}
}

// UnmarshalCaddyfile reads: ossl [CA [CERTIFICATE KEY]].
func (t *Transport) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name
	args := d.RemainingArgs()
	if len(args) == 2 || len(args) > 3 || d.NextBlock(0) {
		return d.ArgErr()
	}
	for i, field := range []*string{&t.CA, &t.Certificate, &t.Key}[:len(args)] {
		*field = args[i]
	}
	return nil
}

// Provision compiles the configuration.
func (t *Transport) Provision(caddy.Context) (err error) {
	config := &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return err
		}
		if text, err = keys.NormalizePEM(text); err != nil {
			return fmt.Errorf("%s: %w", t.CA, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s holds no certificate", t.CA)
		}
	}
	if t.Certificate != "" || t.Key != "" {
		pair, err := keys.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	t.Transport, err = httptls.NewTransport(&http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true})
	return err
}

// RoundTrip implements http.RoundTripper. The reverse proxy leaves the scheme to its transport.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	request.URL.Scheme = "https"
	return t.Transport.RoundTrip(request)
}

// Cleanup implements caddy.CleanerUpper.
func (t *Transport) Cleanup() error {
	if t.Transport != nil {
		t.CloseIdleConnections()
	}
	return nil
}

// TLSEnabled implements reverseproxy.TLSTransport.
func (t *Transport) TLSEnabled() bool { return true }

// EnableTLS implements reverseproxy.TLSTransport. Caddy's settings can't be honoured.
func (t *Transport) EnableTLS(*reverseproxy.TLSConfig) error {
	return errors.New("the transport ossl has its own TLS settings")
}
