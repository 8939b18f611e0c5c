//go:build go1.27

package terminator

import (
	"crypto/tls"
	"net/http"
)

// An http2Server serves HTTP/2: net/http does, on any connection whose ConnectionState names it.
type http2Server struct{}

// configure prepares to serve HTTP/2 as a part of an http.Server.
func (*http2Server) configure(inner *http.Server) error {
	inner.Protocols = new(http.Protocols)
	inner.Protocols.SetHTTP1(true)
	inner.Protocols.SetHTTP2(true)
	inner.TLSConfig = &tls.Config{NextProtos: []string{"h2", "http/1.1"}} // at which net/http looks
	return nil
}

// serveHTTP2 gives a connection to the http.Server, and reports whether it took it.
func (g *generation) serveHTTP2(_ *client, conn *http2Conn) (taken bool) { return g.give.give(conn) }
