package httptls

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/ossl-go/ossl"
)

// A Transport is an [http.RoundTripper] whose TLS is OpenSSL's. It keeps connections for reuse, so
// make one and share it. It is safe for concurrent use.
type Transport struct {
	settings *settings
	plain    *http.Transport // for http:// requests, through proxies too

	mu     sync.Mutex
	routes map[routeKey]*route // guarded by mu
	clock  int64               // guarded by mu; counts uses of routes in the map
	direct *route              // for requests without a proxy; constant
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport returns a Transport with the settings of base. Its TLS configuration is
// base.TLSClientConfig, compiled with opts. A nil base is like http.DefaultTransport: proxies from
// the environment, HTTP/2, the same timeouts. base is copied, and can still be used.
//
// All of base's settings mean the same as in net/http. DialTLS, DialTLSContext and TLSNextProto
// cause an error, because they would bring another TLS implementation.
func NewTransport(base *http.Transport, opts ...ossl.Option) (*Transport, error) {
	s, err := newSettings(base, opts)
	if err != nil {
		return nil, err
	}
	t := &Transport{settings: s, routes: make(map[routeKey]*route)}
	t.plain = s.plain()
	t.direct, err = newRoute(s, nil, false)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// NewClient returns an [http.Client] with a [Transport] made of base and opts.
func NewClient(base *http.Transport, opts ...ossl.Option) (*http.Client, error) {
	t, err := NewTransport(base, opts...)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: t}, nil
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case req.URL == nil:
		return t.plain.RoundTrip(req) // which returns an error
	case req.URL.Scheme != "https":
		return t.roundTripPlain(req)
	}
	r, err := t.route(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return r.roundTrip(req)
}

// CloseIdleConnections closes the connections that no request uses.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	routes := make([]*route, 0, len(t.routes)+1)
	routes = append(routes, t.direct)
	for _, r := range t.routes {
		routes = append(routes, r)
	}
	t.mu.Unlock()
	t.plain.CloseIdleConnections()
	for _, r := range routes {
		r.transport.CloseIdleConnections()
	}
}

// RegisterProtocol registers a RoundTripper for a scheme, as [http.Transport.RegisterProtocol]
// does. It panics if scheme is https, which the Transport itself implements, or is registered
// already.
func (t *Transport) RegisterProtocol(scheme string, rt http.RoundTripper) {
	if scheme == "https" {
		panic("protocol " + scheme + " already registered")
	}
	t.plain.RegisterProtocol(scheme, rt)
}

// A routeKey is how connections for a request are made. net/http separates connections by the same
// properties, and by host.
type routeKey struct {
	proxy string
	h1    bool // the request needs HTTP/1.1: it asks for a WebSocket
}

// A route is one way to make connections, with the connections made that way.
type route struct {
	settings  *settings
	proxy     *url.URL // nil for none
	transport *http.Transport
	tls       func() (*ossl.Context, error)
	used      int64 // guarded by Transport.mu
	handoff         // the part that depends on the Go version
}

// maxRoutes bounds the routes in a Transport: a Proxy function may return another URL for each
// request.
const maxRoutes = 128

func (t *Transport) route(req *http.Request) (*route, error) {
	var proxy *url.URL
	if f := t.settings.base.Proxy; f != nil {
		var err error
		if proxy, err = f(req); err != nil {
			return nil, err
		}
	}
	h1 := wantsHTTP1(req)
	if proxy == nil && !h1 {
		return t.direct, nil
	}
	key := routeKey{h1: h1}
	if proxy != nil {
		key.proxy = proxy.String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clock++
	r := t.routes[key]
	if r == nil {
		var err error
		if r, err = newRoute(t.settings, proxy, h1); err != nil {
			return nil, err
		}
		if len(t.routes) >= maxRoutes {
			t.forgetOldest()
		}
		t.routes[key] = r
	}
	r.used = t.clock
	return r, nil
}

// forgetOldest drops the least recently used route. Its requests under way continue; their
// connections are closed after them. t.mu is held.
func (t *Transport) forgetOldest() {
	var oldest routeKey
	var found *route
	for key, r := range t.routes {
		if found == nil || r.used < found.used {
			oldest, found = key, r
		}
	}
	delete(t.routes, oldest)
	go found.transport.CloseIdleConnections()
}

func newRoute(s *settings, proxy *url.URL, h1 bool) (*route, error) {
	r := &route{settings: s, proxy: proxy, tls: s.tls}
	if h1 {
		r.tls = s.tlsWithoutALPN
	}
	if proxy != nil {
		if err := checkProxy(proxy); err != nil {
			return nil, err
		}
	}
	t := s.base.Clone()
	t.Proxy = nil // connections already go through it
	t.TLSClientConfig = nil
	t.DialTLSContext = r.dialTLS
	r.transport = t
	return r, r.setup(s.http2 && !h1)
}

// wantsHTTP1 reports whether a request needs HTTP/1.1, by net/http's rule: it asks for a WebSocket.
func wantsHTTP1(req *http.Request) bool {
	return len(req.Header["Upgrade"]) > 0 && strings.EqualFold(req.Header.Get("Upgrade"), "websocket") &&
		httpguts.HeaderValuesContainsToken(req.Header["Connection"], "upgrade")
}

// connect makes the connection beneath TLS to addr, which is host:port.
func (r *route) connect(ctx context.Context, addr string) (net.Conn, error) {
	if r.proxy != nil {
		return r.connectByProxy(ctx, addr)
	}
	return r.settings.dial(ctx, "tcp", addr)
}

// client returns a TLS connection to addr whose handshake has not run.
func (r *route) client(ctx context.Context, addr string) (*ossl.Conn, error) {
	tls, err := r.tls()
	if err != nil {
		return nil, err
	}
	raw, err := r.connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	return tls.Client(raw, r.settings.serverName(addr)), nil
}
