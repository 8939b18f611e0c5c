//go:build !go1.27

package terminator

import (
	"context"
	"net/http"

	"golang.org/x/net/http2"
)

// An http2Server serves HTTP/2. Before Go 1.27 net/http speaks it on a *tls.Conn alone.
type http2Server struct {
	//lint:ignore SA1019 its replacement is in Go 1.27
	server http2.Server
}

// configure prepares to serve HTTP/2 as a part of an http.Server, whose Shutdown sends GOAWAY.
func (s *http2Server) configure(inner *http.Server) error {
	//lint:ignore SA1019 its replacement is in Go 1.27
	return http2.ConfigureServer(inner, &s.server)
}

// serveHTTP2 serves a connection until it is closed, and reports whether somebody else closes it.
func (g *generation) serveHTTP2(c *client, conn *http2Conn) (taken bool) {
	//lint:ignore SA1019 its replacement is in Go 1.27
	g.http2.server.ServeConn(conn, &http2.ServeConnOpts{
		Context:    context.WithValue(context.Background(), clientKey{}, c),
		BaseConfig: g.http,
		Handler:    g,
	})
	return false
}
