// Package caddy has two modules for Caddy whose TLS is ossl's: a listener wrapper and a transport of
// the reverse proxy. docs/RECIPES.md shows their configuration.
//
// It is a module of its own, outside of go.work, because Caddy takes long to compile. ci/recipes
// tests it.
package caddy

import (
	"crypto/tls"
	"net"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

func init() {
	caddy.RegisterModule(Listener{})
	caddy.RegisterModule(Transport{})
}

// A Listener is the listener wrapper caddy.listeners.ossl. Its server has no TLS of Caddy's own. The
// files may change while Caddy runs.
type Listener struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	ClientCA    string `json:"client_ca,omitempty"` // if set, clients need a certificate

	tls *ossl.Context
}

// CaddyModule implements caddy.Module.
func (Listener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.ossl", New: func() caddy.Module { return new(Listener) }}
}

// UnmarshalCaddyfile reads: ossl CERTIFICATE KEY [CLIENT_CA].
func (l *Listener) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name
	if !d.Args(&l.Certificate, &l.Key) {
		return d.ArgErr()
	}
	d.Args(&l.ClientCA)
	if d.NextArg() || d.NextBlock(0) {
		return d.ArgErr()
	}
	return nil
}

// Provision compiles the configuration.
func (l *Listener) Provision(caddy.Context) error {
	pair, err := httptls.NewReloader(l.Certificate, l.Key)
	if err != nil {
		return err
	}
	config := &tls.Config{GetCertificate: pair.GetCertificate, NextProtos: []string{"h2", "http/1.1"}}
	if l.ClientCA != "" {
		clients, err := httptls.NewClientCAReloader(l.ClientCA)
		if err != nil {
			return err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config = clients.Config(config)
	}
	l.tls, err = ossl.NewContext(config, ossl.WithHTTP2())
	return err
}

// WrapListener implements caddy.ListenerWrapper.
func (l *Listener) WrapListener(inner net.Listener) net.Listener { return l.tls.NewListener(inner) }
