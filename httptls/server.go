package httptls

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ossl-go/ossl"
)

// ListenAndServeTLS listens on the TCP address addr, ":https" if it is empty, and serves HTTP/1.1
// and HTTP/2 over OpenSSL, as [http.ListenAndServeTLS] does over crypto/tls. It always returns a
// non-nil error.
func ListenAndServeTLS(addr, certFile, keyFile string, handler http.Handler) error {
	server := &Server{Server: &http.Server{Addr: addr, Handler: handler}}
	return server.ListenAndServeTLS(certFile, keyFile)
}

// ServeTLS serves the connections of l over OpenSSL, as [http.ServeTLS] does over crypto/tls. It
// always returns a non-nil error.
func ServeTLS(l net.Listener, handler http.Handler, certFile, keyFile string) error {
	return (&Server{Server: &http.Server{Handler: handler}}).ServeTLS(l, certFile, keyFile)
}

// Serve serves the connections of l, which are [*ossl.Conn]: l comes from [ossl.Listen] or an
// [ossl.Context]. Their NextProtos must list "h2" for HTTP/2, and "http/1.1". It always returns a
// non-nil error.
func Serve(l net.Listener, handler http.Handler) error {
	return (&Server{Server: &http.Server{Handler: handler}}).Serve(l)
}

// A Server is an [http.Server] whose TLS is OpenSSL's. All of the http.Server's settings mean the
// same as in net/http. Its TLSConfig is compiled with Options when ServeTLS begins. A non-empty
// TLSNextProto causes an error; an empty one turns HTTP/2 off.
//
// Call Shutdown and Close of the Server, not of the http.Server within, which doesn't know all of
// the connections.
type Server struct {
	*http.Server
	Options []ossl.Option // for the TLS context, besides TLSConfig

	// ClientCAs, if set, take the place of TLSConfig's ClientCAs, and follow their files. TLSConfig
	// must verify clients' certificates, or have a GetConfigForClient. They are for ServeTLS and
	// ListenAndServeTLS; a listener given to Serve has a configuration already.
	ClientCAs *ClientCAReloader

	once     sync.Once
	setupErr error
	enabled  http.Protocols // constant after setup, as is config
	config   *tls.Config

	serving
}

// prepare checks the settings and saves those that net/http changes when it serves.
func (s *Server) prepare() error {
	s.once.Do(func() {
		for proto := range s.TLSNextProto {
			s.setupErr = &ossl.ConfigError{Field: "http.Server.TLSNextProto", Reason: "its function for " + proto +
				" takes a *tls.Conn; Protocols and HTTP2 are honoured"}
			return
		}
		s.enabled = s.protocols()
		s.config = &tls.Config{}
		if s.TLSConfig != nil {
			s.config = s.TLSConfig.Clone()
		}
		hook := s.ConnState
		s.ConnState = func(conn net.Conn, state http.ConnState) {
			noteState(conn, state)
			if hook != nil {
				hook(conn, state)
			}
		}
		s.setupErr = s.setup()
	})
	return s.setupErr
}

// noteState tells a connection whether a request is under way: [ossl.Conn.SetIdle].
func noteState(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(interface{ SetIdle(bool) }); ok && state != http.StateClosed {
		c.SetIdle(state == http.StateNew || state == http.StateIdle)
	}
}

// prepareFor prepares to serve the connections of l.
func (s *Server) prepareFor(l net.Listener) error {
	if err := s.prepare(); err != nil {
		return err
	}
	if _, own := l.(ownListener); s.ClientCAs != nil && !own {
		return &ossl.ConfigError{Field: "httptls.Server.ClientCAs", Reason: "the listener's configuration is made already; " +
			"use ServeTLS, or ClientCAReloader.Config for the listener"}
	}
	return nil
}

// An ownListener accepts connections with the Server's configuration.
type ownListener struct{ net.Listener }

// ListenAndServeTLS listens on Addr, ":https" if it is empty, and calls [Server.ServeTLS].
func (s *Server) ListenAndServeTLS(certFile, keyFile string) error {
	addr := s.Addr
	if addr == "" {
		addr = ":https"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return s.ServeTLS(l, certFile, keyFile)
}

// ServeTLS serves the connections of l over OpenSSL, with TLSConfig and the certificate in the
// files. The files are optional if TLSConfig has Certificates, GetCertificate or
// GetConfigForClient, or if clients authenticate the server by pre-shared keys alone
// ([ossl.WithPSKLookup]); the GetCertificate of a [Reloader] follows the files' changes. ServeTLS
// closes l. It always returns a non-nil error, http.ErrServerClosed after Shutdown or Close.
func (s *Server) ServeTLS(l net.Listener, certFile, keyFile string) error {
	err := s.prepare()
	var ctx *ossl.Context
	if err == nil {
		ctx, err = s.compile(certFile, keyFile)
	}
	if err != nil {
		_ = l.Close()
		return err
	}
	return s.Serve(ownListener{ctx.NewListener(l)})
}

func (s *Server) compile(certFile, keyFile string) (*ossl.Context, error) {
	config := s.config.Clone()
	config.NextProtos = s.nextProtos(config.NextProtos)
	if certFile != "" || keyFile != "" { // else the Context's listener knows whether it can serve
		cert, err := loadPair(certFile, keyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{cert}
	}
	if s.ClientCAs != nil {
		const field = "httptls.Server.ClientCAs"
		switch {
		case config.ClientCAs != nil:
			return nil, &ossl.ConfigError{Field: field, Reason: "TLSConfig has ClientCAs too"}
		case config.ClientAuth < tls.VerifyClientCertIfGiven && config.GetConfigForClient == nil:
			return nil, &ossl.ConfigError{Field: field, Reason: "TLSConfig.ClientAuth verifies no certificates"}
		}
		config = s.ClientCAs.Config(config)
	}
	return ossl.NewContext(config, s.Options...)
}

// nextProtos returns the protocols to offer by ALPN: the configuration's with "h2" and "http/1.1"
// added or removed, as in net/http.
func (s *Server) nextProtos(protos []string) []string {
	protos = slices.DeleteFunc(slices.Clone(protos), func(p string) bool {
		return p == "h2" && !s.enabled.HTTP2() || p == "http/1.1" && !s.enabled.HTTP1()
	})
	if s.enabled.HTTP2() && !slices.Contains(protos, "h2") {
		protos = append(protos, "h2")
	}
	if s.enabled.HTTP1() && !slices.Contains(protos, "http/1.1") {
		protos = append(protos, "http/1.1")
	}
	return protos
}

// protocols returns the server's protocols, by net/http's rules.
func (s *Server) protocols() (p http.Protocols) {
	if s.Protocols != nil {
		return *s.Protocols
	}
	p.SetHTTP1(true)
	p.SetHTTP2(s.TLSNextProto == nil && http2Enabled("http2server"))
	return p
}

// Shutdown shuts the server down without interrupting requests, as [http.Server.Shutdown] does: it
// closes the listeners, sends GOAWAY to HTTP/2 clients, closes idle connections, and waits for the
// others to become idle, and for handshakes under way, until ctx is done. It doesn't wait for
// hijacked connections.
func (s *Server) Shutdown(ctx context.Context) error { return s.shutdown(ctx) }

// Close closes the listeners and all connections, except for hijacked ones.
func (s *Server) Close() error { return s.closeAll() }

// handshakeTimeout returns the bound on a handshake as in net/http: the smallest of the server's
// timeouts for a request's header and its response, 0 for none.
func (s *Server) handshakeTimeout() (d time.Duration) {
	for _, timeout := range []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout} {
		if timeout > 0 && (d == 0 || timeout < d) {
			d = timeout
		}
	}
	return d
}
