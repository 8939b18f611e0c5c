//go:build !go1.27

package httptls

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"

	"github.com/ossl-go/ossl"
)

// errHTTP2 stops net/http's attempt to get an HTTP/1.1 connection: there is one for HTTP/2, in the
// pool that it asks first.
var errHTTP2 = errors.New("httptls: the connection is for HTTP/2")

// nextProtoHandoff is the key under which http2 takes connections of any type from net/http.
const nextProtoHandoff = "unencrypted_http2"

// handoff is the part of a route that gives connections to HTTP/2. net/http, which keeps the idle
// HTTP/1.1 connections and calls dialTLS when it needs another one, asks http2's pool first:
// http2.ConfigureTransports has registered it. A connection for HTTP/2 is added to that pool, and
// net/http gets the request again.
type handoff struct {
	add func(addr string, c *tls.Conn) http.RoundTripper // nil without HTTP/2

	mu      sync.Mutex
	dialing map[string]*group // guarded by mu; by address
	found   map[string]uint64 // guarded by mu; by address, the number of its last connection for HTTP/2
	count   atomic.Uint64     // connections for HTTP/2; increased with mu held
}

// A group is the dials to an address that are under way. The first HTTP/2 connection among them
// serves all of their requests.
type group struct {
	dials int
	found chan struct{} // closed when there is an HTTP/2 connection
}

func (r *route) setup(withHTTP2 bool) error {
	r.transport.TLSNextProto = nil
	r.transport.Protocols = new(http.Protocols)
	r.transport.Protocols.SetHTTP1(true)
	if !withHTTP2 {
		return nil
	}
	//lint:ignore SA1019 its replacement is in Go 1.27: native.go
	if _, err := http2.ConfigureTransports(r.transport); err != nil {
		return err
	}
	r.add = r.transport.TLSNextProto[nextProtoHandoff]
	if r.add == nil {
		return errors.New("httptls: this version of golang.org/x/net/http2 takes no connections from others")
	}
	r.dialing = make(map[string]*group)
	r.found = make(map[string]uint64)
	return nil
}

func (r *route) roundTrip(req *http.Request) (*http.Response, error) {
	return roundTrip(r.transport, &r.count, req)
}

func (t *Transport) roundTripPlain(req *http.Request) (*http.Response, error) {
	if t.settings.base.Proxy == nil {
		return t.plain.RoundTrip(req)
	}
	return roundTrip(t.plain, new(atomic.Uint64), req) // it may be over TLS to the proxy
}

// roundTrip sends req by t, whose connections for HTTP/2 count counts.
func roundTrip(t *http.Transport, count *atomic.Uint64, req *http.Request) (*http.Response, error) {
	a := new(attempt)
	a.trace.GotConn = func(info httptrace.GotConnInfo) { a.conn = info.Conn }
	a.Context = httptrace.WithClientTrace(req.Context(), &a.trace)
	sent := req.WithContext(a)
	body := &a.body
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		body.body = req.Body
		sent.Body = body
	} // else each attempt gets a new body; and net/http sends the kinds of body that it knows together with the header
	for range maxAttempts {
		a.since.Store(count.Load())
		resp, err := t.RoundTrip(sent)
		if err == errHTTP2 {
			if err = body.again(req, sent); err == nil {
				continue
			}
		}
		body.release()
		if err != nil {
			return nil, err
		}
		resp.Request = req
		if conn, ok := a.conn.(*ossl.Conn); ok && resp.TLS == nil {
			state := conn.ConnectionState()
			resp.TLS = &state
		}
		return resp, nil
	}
	body.release()
	return nil, errors.New("httptls: the server's HTTP/2 connections take no requests")
}

// maxAttempts bounds the connections that are made for a request if each one is for HTTP/2 and
// takes no request, or only other ones.
const maxAttempts = 100

// An attempt is the state of a request on its way through net/http. It is the context that the
// request is sent with.
type attempt struct {
	context.Context
	trace httptrace.ClientTrace
	conn  net.Conn // the connection that was used last
	body  heldBody
	since atomic.Uint64 // handoff.count when http2's pool was asked last
}

type attemptKey struct{}

func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// A heldBody is a request body that is not closed unread before RoundTrip returns. net/http closes
// the bodies of requests for which it finds no connection, but those are still to be sent by
// HTTP/2.
type heldBody struct {
	body io.ReadCloser // nil for none

	mu       sync.Mutex
	read     bool // guarded by mu
	closed   bool // guarded by mu; Close was called
	released bool // guarded by mu; RoundTrip has returned
}

func (h *heldBody) Read(p []byte) (int, error) {
	h.mu.Lock()
	h.read = true
	h.mu.Unlock()
	return h.body.Read(p)
}

func (h *heldBody) Close() error {
	h.mu.Lock()
	hold := !h.read && !h.released
	h.closed = true
	h.mu.Unlock()
	if hold {
		return nil
	}
	return h.body.Close()
}

// again prepares the body of sent, a copy of req, for another attempt.
func (h *heldBody) again(req, sent *http.Request) (err error) {
	if h.body == nil {
		if req.GetBody != nil && req.Body != nil && req.Body != http.NoBody {
			sent.Body, err = req.GetBody()
		}
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.read {
		return errors.New("net/http: cannot rewind body after connection loss")
	}
	h.closed = false
	return nil
}

// release lets the body be closed.
func (h *heldBody) release() {
	if h.body == nil {
		return
	}
	h.mu.Lock()
	pending := h.closed && !h.read && !h.released
	h.released = true
	h.mu.Unlock()
	if pending {
		_ = h.body.Close()
	}
}

// finish runs the handshake of a connection for net/http.
func (s *settings) finish(ctx context.Context, conn *ossl.Conn) (net.Conn, error) {
	if err := s.tracedHandshake(ctx, conn); err != nil {
		return nil, err
	}
	return conn, nil
}

// dialTLS returns a connection to addr for HTTP/1.1, or errHTTP2.
func (r *route) dialTLS(ctx context.Context, _, addr string) (net.Conn, error) {
	if r.add == nil {
		return r.dialHandshake(ctx, addr)
	}
	g := r.join(ctx, addr)
	if g == nil {
		return nil, errHTTP2
	}
	defer r.leave(addr, g)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, 1)
	go func() {
		conn, err := r.dialHandshake(ctx, addr)
		results <- result{conn, err}
	}()
	select {
	case res := <-results:
		if res.err != nil {
			return nil, res.err
		}
		return r.take(addr, g, res.conn)
	case <-g.found:
		go func() {
			if res := <-results; res.err == nil {
				_ = res.conn.Close()
			}
		}()
		return nil, errHTTP2
	}
}

func (r *route) dialHandshake(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := r.client(ctx, addr)
	if err != nil {
		return nil, err
	}
	return r.settings.finish(ctx, conn)
}

// take returns conn, or gives it to http2 if the handshake agreed on that.
func (r *route) take(addr string, g *group, conn net.Conn) (net.Conn, error) {
	if conn.(*ossl.Conn).ConnectionState().NegotiatedProtocol != "h2" {
		return conn, nil
	}
	rt := r.add(addr, tls.Client(handedOver{conn: conn}, nil))
	if failed, ok := rt.(interface{ RoundTripErr() error }); ok { // conn is closed then
		return nil, failed.RoundTripErr()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.found) >= maxFound {
		clear(r.found) // costs one connection at most
	}
	r.found[addr] = r.count.Add(1)
	if r.dialing[addr] == g {
		delete(r.dialing, addr)
		close(g.found)
	}
	return nil, errHTTP2
}

// maxFound bounds handoff.found.
const maxFound = 1024

// join adds a dial to those under way for addr. It returns nil if an HTTP/2 connection was made
// after the request last asked http2's pool, while it waited for its turn to dial.
func (r *route) join(ctx context.Context, addr string) *group {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok && r.found[addr] > a.since.Load() {
		return nil
	}
	g := r.dialing[addr]
	if g == nil {
		g = &group{found: make(chan struct{})}
		r.dialing[addr] = g
	}
	g.dials++
	return g
}

func (r *route) leave(addr string, g *group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.dials--; g.dials == 0 && r.dialing[addr] == g {
		delete(r.dialing, addr)
	}
}

// handedOver carries a connection through a parameter of type *tls.Conn, in the way that net/http
// and http2 use for connections of other types.
type handedOver struct {
	net.Conn // nil: the *tls.Conn itself is never used
	conn     net.Conn
}

func (h handedOver) UnencryptedNetConn() net.Conn { return h.conn }
