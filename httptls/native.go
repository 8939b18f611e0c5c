//go:build go1.27

package httptls

import (
	"context"
	"net"
	"net/http"
	"slices"

	"github.com/ossl-go/ossl"
)

// From Go 1.27 on net/http treats any connection with ConnectionState and HandshakeContext as it
// does a *tls.Conn: it runs the handshake with its hooks, uses the protocol agreed on, and fills
// Response.TLS and Request.TLS.

type handoff struct{}

func (r *route) setup(withHTTP2 bool) error {
	r.transport.TLSNextProto = nil
	r.transport.Protocols = new(http.Protocols)
	r.transport.Protocols.SetHTTP1(true)
	r.transport.Protocols.SetHTTP2(withHTTP2)
	return nil
}

func (r *route) roundTrip(req *http.Request) (*http.Response, error) {
	return r.transport.RoundTrip(req)
}

func (t *Transport) roundTripPlain(req *http.Request) (*http.Response, error) {
	return t.plain.RoundTrip(req)
}

func (r *route) dialTLS(ctx context.Context, _, addr string) (net.Conn, error) {
	conn, err := r.client(ctx, addr)
	if err != nil {
		return nil, err
	}
	return r.settings.finish(ctx, conn)
}

// finish leaves the handshake of a connection to net/http.
func (s *settings) finish(_ context.Context, conn *ossl.Conn) (net.Conn, error) {
	return &boundedConn{conn, s}, nil
}

// A boundedConn is a connection whose handshake is bounded by TLSHandshakeTimeout, which net/http
// leaves to DialTLSContext.
type boundedConn struct {
	*ossl.Conn
	settings *settings
}

func (c *boundedConn) tlsConn() *ossl.Conn { return c.Conn }

func (c *boundedConn) HandshakeContext(ctx context.Context) error {
	return c.settings.handshake(ctx, c.Conn)
}

type serving struct{}

func (s *Server) setup() error {
	// net/http's Serve looks here to decide whether to speak HTTP/2.
	if s.enabled.HTTP2() && !slices.Contains(s.config.NextProtos, "h2") {
		s.TLSConfig = s.config.Clone()
		s.TLSConfig.NextProtos = s.nextProtos(s.config.NextProtos)
	}
	// Hooks get the user's connections and listeners.
	if hook := s.ConnState; hook != nil {
		s.ConnState = func(conn net.Conn, state http.ConnState) { hook(unwrapped(conn), state) }
	}
	if hook := s.ConnContext; hook != nil {
		s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context { return hook(ctx, unwrapped(conn)) }
	}
	if hook := s.BaseContext; hook != nil {
		s.BaseContext = func(l net.Listener) context.Context {
			if f, ok := l.(*front); ok {
				l = f.Listener
			}
			return hook(l)
		}
	}
	return nil
}

// Serve serves the connections of l, which are [*ossl.Conn]: l comes from [ossl.Listen] or an
// [ossl.Context], and its NextProtos list "h2" for HTTP/2 and "http/1.1". Connections of other
// types are served without TLS, as the http.Server would. Serve closes l. It always returns a
// non-nil error, http.ErrServerClosed after Shutdown or Close.
func (s *Server) Serve(l net.Listener) error {
	if err := s.prepareFor(l); err != nil {
		_ = l.Close()
		return err
	}
	return s.Server.Serve(&front{l})
}

// A front is the listener that the http.Server serves.
type front struct {
	net.Listener // the user's
}

// Accept returns connections without ReadFrom, except those that can send files.
func (f *front) Accept() (net.Conn, error) {
	conn, err := f.Listener.Accept()
	if c, ok := conn.(*ossl.Conn); ok && !c.SendsFiles() {
		return &writingConn{Conn: c}, nil
	}
	return conn, err
}

func (s *Server) shutdown(ctx context.Context) error { return s.Server.Shutdown(ctx) }

func (s *Server) closeAll() error { return s.Server.Close() }
