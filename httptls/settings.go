package httptls

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/ossl-go/ossl"
)

// settings are the checked settings of an http.Transport, with their TLS contexts.
type settings struct {
	base      *http.Transport // a copy, which makes no connection itself
	config    *tls.Config     // base's TLSClientConfig, never nil
	protocols http.Protocols
	http2     bool

	tls            func() (*ossl.Context, error)
	tlsWithoutALPN func() (*ossl.Context, error) // for requests that need HTTP/1.1
	tlsToProxy     func() (*ossl.Context, error)
}

func newSettings(base *http.Transport, opts []ossl.Option) (*settings, error) {
	if base == nil {
		base = &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: defaultDialTimeout, KeepAlive: defaultDialTimeout}).DialContext,
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          100,
			IdleConnTimeout:       defaultIdleConnTimeout,
			TLSHandshakeTimeout:   defaultTLSHandshakeTimeout,
			ExpectContinueTimeout: defaultExpectContinueTimeout,
		}
	}
	s := &settings{base: base.Clone()}
	if err := s.check(); err != nil {
		return nil, err
	}
	s.protocols = protocolsOf(base, s.base)
	s.http2 = s.protocols.HTTP2() && http2Enabled("http2client")
	s.config = s.base.TLSClientConfig
	if s.config == nil {
		s.config = &tls.Config{}
	}
	s.base.TLSNextProto = nil

	context := func(protos []string) (*ossl.Context, error) {
		config := s.config.Clone()
		config.NextProtos = protos
		return ossl.NewContext(config, opts...)
	}
	ctx, err := context(s.nextProtos())
	if err != nil {
		return nil, err
	}
	s.tls = func() (*ossl.Context, error) { return ctx, nil }
	s.tlsWithoutALPN = onceMade(func() (*ossl.Context, error) { return context(nil) })
	s.tlsToProxy = onceMade(func() (*ossl.Context, error) { return context([]string{"http/1.1"}) })
	return s, nil
}

// onceMade returns a function that returns the first result of make that is not an error.
func onceMade(make func() (*ossl.Context, error)) func() (*ossl.Context, error) {
	var mu sync.Mutex
	var made *ossl.Context
	return func() (_ *ossl.Context, err error) {
		mu.Lock()
		defer mu.Unlock()
		if made == nil {
			made, err = make()
		}
		return made, err
	}
}

// check returns an error for settings that would bring another TLS implementation.
func (s *settings) check() error {
	const reason = "TLS is OpenSSL's here"
	switch {
	case s.base.DialTLSContext != nil:
		return &ossl.ConfigError{Field: "http.Transport.DialTLSContext", Reason: reason + "; DialContext is honoured"}
	//lint:ignore SA1019 deprecated, and refused
	case s.base.DialTLS != nil:
		return &ossl.ConfigError{Field: "http.Transport.DialTLS", Reason: reason + "; DialContext is honoured"}
	case len(s.base.TLSNextProto) > 0:
		return &ossl.ConfigError{Field: "http.Transport.TLSNextProto", Reason: "its functions take a *tls.Conn; Protocols is honoured"}
	}
	return nil
}

// protocolsOf returns the protocols that base would use by net/http's rules. clone is its copy.
// clone.TLSNextProto is the user's, while net/http sets base.TLSNextProto.
func protocolsOf(base, clone *http.Transport) (p http.Protocols) {
	if clone.Protocols != nil {
		return *clone.Protocols
	}
	p.SetHTTP1(true)
	config := base.TLSClientConfig // net/http sets it when base is used, or cloned, with HTTP/2 enabled
	//lint:ignore SA1019 deprecated, and honoured
	custom := config != nil && !slices.Contains(config.NextProtos, "h2") || base.Dial != nil || base.DialContext != nil
	if clone.TLSNextProto == nil && (base.ForceAttemptHTTP2 || !custom) {
		p.SetHTTP2(true)
	}
	return p
}

// nextProtos returns the protocols to offer by ALPN: as in net/http, only the configuration's
// unless HTTP/2 is enabled.
func (s *settings) nextProtos() []string {
	protos := slices.Clone(s.config.NextProtos)
	if !s.http2 {
		return slices.DeleteFunc(protos, func(p string) bool { return p == "h2" })
	}
	if !slices.Contains(protos, "h2") {
		protos = slices.Insert(protos, 0, "h2")
	}
	if !slices.Contains(protos, "http/1.1") {
		protos = append(protos, "http/1.1")
	}
	if !s.protocols.HTTP1() {
		protos = slices.DeleteFunc(protos, func(p string) bool { return p == "http/1.1" })
	}
	return protos
}

// plain returns the transport for http:// requests. It meets TLS only on the way to a proxy.
func (s *settings) plain() *http.Transport {
	t := s.base.Clone()
	t.TLSClientConfig = nil
	t.TLSNextProto = nil
	t.Protocols = new(http.Protocols)
	t.Protocols.SetUnencryptedHTTP2(s.protocols.UnencryptedHTTP2())
	t.Protocols.SetHTTP1(s.protocols.HTTP1() || !s.protocols.UnencryptedHTTP2())
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := s.dialProxyTLS(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return s.finish(ctx, conn)
	}
	return t
}

// dial makes a TCP connection as base would.
func (s *settings) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	switch {
	case s.base.DialContext != nil:
		conn, err = s.base.DialContext(ctx, network, addr)
	//lint:ignore SA1019 deprecated, and honoured
	case s.base.Dial != nil:
		//lint:ignore SA1019 deprecated, and honoured
		conn, err = s.base.Dial(network, addr)
	default:
		var d net.Dialer
		return d.DialContext(ctx, network, addr)
	}
	if conn == nil && err == nil {
		err = errors.New("net/http: Transport.DialContext hook returned (nil, nil)")
	}
	return conn, err
}

// dialProxyTLS makes a TLS connection to a proxy, without the handshake.
func (s *settings) dialProxyTLS(ctx context.Context, network, addr string) (*ossl.Conn, error) {
	tls, err := s.tlsToProxy()
	if err != nil {
		return nil, err
	}
	raw, err := s.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return tls.Client(raw, s.serverName(addr)), nil
}

// serverName returns the name to ask for at addr: by net/http's rule the configuration's comes
// first.
func (s *settings) serverName(addr string) string {
	if s.config.ServerName != "" {
		return s.config.ServerName
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}
