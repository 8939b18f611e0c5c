//go:build !go1.27

package httptls

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/ossl-go/ossl"
)

// serving is the part of a Server that its http.Server lacks: handshakes, and connections for
// HTTP/2. After the handshake, connections for HTTP/1.1 go to the http.Server, through a listener
// that serving makes.
type serving struct {
	//lint:ignore SA1019 its replacement is in Go 1.27: native.go
	http2  http2.Server
	goAway *http.Server // only its function that closes HTTP/2 connections gracefully is used
	hooks  struct {     // the hooks that the user set
		connState   func(net.Conn, http.ConnState)
		connContext func(context.Context, net.Conn) context.Context
		baseContext func(net.Listener) context.Context
	}

	mu    sync.Mutex
	conns map[*ossl.Conn]*serverConn // guarded by mu; those that the http.Server doesn't know
	ended ending                     // guarded by mu
}

type ending int

const (
	running ending = iota
	shuttingDown
	closed
)

// A serverConn is a connection in its handshake, or one for HTTP/2.
type serverConn struct {
	ctx       context.Context
	since     time.Time
	handedOff bool // given to the http.Server
	http2     bool
	writing   writingConn // given to the http.Server in the place of a connection that can't send files
}

// forHTTP1 returns the connection to give to the http.Server.
func (c *serverConn) forHTTP1(conn *ossl.Conn) net.Conn {
	if conn.SendsFiles() {
		return conn
	}
	c.writing.Conn = conn
	return &c.writing
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
	base := context.Background()
	if f := s.hooks.baseContext; f != nil {
		if base = f(l); base == nil {
			panic("BaseContext returned a nil context")
		}
	}
	f := &front{Listener: l, server: s, base: base, ready: make(chan accepted), done: make(chan struct{})}
	go f.run()
	return s.Server.Serve(f)
}

func (s *Server) setup() error {
	if s.enabled.HTTP2() {
		s.goAway = &http.Server{IdleTimeout: s.IdleTimeout, ReadTimeout: s.ReadTimeout, TLSConfig: s.config.Clone()}
		//lint:ignore SA1019 its replacement is in Go 1.27: native.go
		if err := http2.ConfigureServer(s.goAway, &s.http2); err != nil {
			return err
		}
		s.RegisterOnShutdown(s.sendGoAway)
	}
	s.hooks.connState, s.ConnState = s.ConnState, s.connState
	s.hooks.connContext, s.ConnContext = s.ConnContext, s.connContext
	s.hooks.baseContext, s.BaseContext = s.BaseContext, s.baseContext
	return nil
}

// sendGoAway sends a GOAWAY frame to all HTTP/2 clients. It may be called more than once.
func (s *Server) sendGoAway() {
	if s.goAway != nil {
		_ = s.goAway.Shutdown(context.Background()) // it has no connections to wait for
	}
}

// baseContext gives the http.Server the context that Serve has made.
func (s *Server) baseContext(l net.Listener) context.Context {
	if f, ok := l.(*front); ok {
		return f.base
	}
	if s.hooks.baseContext != nil {
		return s.hooks.baseContext(l)
	}
	return context.Background()
}

// connContext gives the http.Server the context that a connection has had since it was accepted.
func (s *Server) connContext(ctx context.Context, conn net.Conn) context.Context {
	if c := s.handedOff(conn); c != nil {
		return c.ctx
	}
	if s.hooks.connContext != nil {
		return s.hooks.connContext(ctx, conn)
	}
	return ctx
}

// connState calls the user's hook, except for a state that was already reported.
func (s *Server) connState(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		if c := s.handedOff(conn); c != nil { // from now on the http.Server tracks it
			s.untrack(unwrapped(conn).(*ossl.Conn))
			return
		}
	}
	s.report(unwrapped(conn), state)
}

func (s *Server) handedOff(conn net.Conn) *serverConn {
	oc, ok := TLSConn(conn)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conns[oc]; c != nil && c.handedOff {
		return c
	}
	return nil
}

// track adds a connection, unless the server is closed.
func (s *Server) track(conn *ossl.Conn, c *serverConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == closed {
		return false
	}
	if s.conns == nil {
		s.conns = make(map[*ossl.Conn]*serverConn)
	}
	s.conns[conn] = c
	return true
}

func (s *Server) untrack(conn *ossl.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// A front is the listener that the http.Server serves. It accepts connections, and delivers those
// that need no handshake, or have completed it and are not for HTTP/2.
type front struct {
	net.Listener // the user's
	server       *Server
	base         context.Context
	ready        chan accepted
	done         chan struct{} // closed by Close
	once         sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

func (f *front) Accept() (net.Conn, error) {
	select {
	case a := <-f.ready:
		return a.conn, a.err
	case <-f.done:
		return nil, net.ErrClosed
	}
}

func (f *front) Close() error {
	f.once.Do(func() { close(f.done) })
	return f.Listener.Close()
}

// deliver gives a connection to the http.Server, and reports whether it took it.
func (f *front) deliver(a accepted) bool {
	select {
	case f.ready <- a:
		return true
	case <-f.done:
		return false
	}
}

func (f *front) run() {
	ctx := context.WithValue(f.base, http.ServerContextKey, f.server.Server)
	for {
		conn, err := f.Listener.Accept()
		if err != nil {
			// The http.Server logs a temporary error and waits before it accepts again.
			temporary, ok := err.(interface{ Temporary() bool })
			if !f.deliver(accepted{nil, err}) || !ok || !temporary.Temporary() {
				return
			}
			continue
		}
		if tlsConn, ok := conn.(*ossl.Conn); ok {
			f.server.start(f, ctx, tlsConn)
		} else if !f.deliver(accepted{conn, nil}) {
			_ = conn.Close()
		}
	}
}

// start begins to serve a connection, in a goroutine of its own.
func (s *Server) start(f *front, ctx context.Context, conn *ossl.Conn) {
	if hook := s.hooks.connContext; hook != nil {
		if ctx = hook(ctx, conn); ctx == nil {
			panic("ConnContext returned nil")
		}
	}
	c := &serverConn{ctx: ctx, since: time.Now()}
	if !s.track(conn, c) {
		_ = conn.Close()
		return
	}
	s.report(conn, http.StateNew)
	go s.serveConn(f, conn, c)
}

func (s *Server) report(conn net.Conn, state http.ConnState) {
	if s.hooks.connState != nil {
		s.hooks.connState(conn, state)
	}
}

func (s *Server) serveConn(f *front, conn *ossl.Conn, c *serverConn) {
	delivered := false
	defer func() {
		if err := recover(); err != nil && err != http.ErrAbortHandler {
			stack := make([]byte, 64<<10)
			stack = stack[:runtime.Stack(stack, false)]
			s.logf("http: panic serving %v: %v\n%s", conn.RemoteAddr(), err, stack)
		}
		if !delivered {
			_ = conn.Close()
			s.untrack(conn)
			s.report(conn, http.StateClosed)
		}
	}()
	timeout := s.handshakeTimeout()
	if timeout > 0 {
		_ = conn.SetDeadline(time.Now().Add(timeout))
	}
	if err := conn.HandshakeContext(c.ctx); err != nil {
		s.handshakeFailed(conn, err)
		return
	}
	if timeout > 0 {
		_ = conn.SetDeadline(time.Time{})
	}
	switch proto := conn.ConnectionState().NegotiatedProtocol; proto {
	case "h2":
		if s.goAway != nil && s.becomeHTTP2(c) {
			//lint:ignore SA1019 its replacement is in Go 1.27: native.go
			s.http2.ServeConn(conn, &http2.ServeConnOpts{
				Context:    c.ctx,
				BaseConfig: s.Server,
				Handler:    &http2Handler{server: s.Server, conn: conn},
			})
		}
	case "", "http/1.1", "http/1.0":
		if s.handOff(c) {
			delivered = f.deliver(accepted{c.forHTTP1(conn), nil})
		}
	default: // another protocol, such as acme-tls/1: it needs the handshake only
	}
}

// becomeHTTP2 marks a connection as one for HTTP/2, unless the server is shutting down.
func (s *Server) becomeHTTP2(c *serverConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.http2 = s.ended == running
	return c.http2
}

func (s *Server) handOff(c *serverConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.handedOff = s.ended == running
	return c.handedOff
}

// handshakeFailed answers and logs a failed handshake as net/http does.
func (s *Server) handshakeFailed(conn *ossl.Conn, err error) {
	reason := err.Error()
	var header tls.RecordHeaderError
	if errors.As(err, &header) && header.Conn != nil && looksLikeHTTP(header.RecordHeader) {
		_, _ = io.WriteString(header.Conn,
			"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
		_ = header.Conn.Close()
		reason = "client sent an HTTP request to an HTTPS server"
	}
	s.logf("http: TLS handshake error from %s: %v", conn.RemoteAddr(), reason)
}

// looksLikeHTTP reports whether the first bytes of a connection look like an HTTP request.
func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}

func (s *Server) logf(format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
	} else {
		log.Printf(format, args...)
	}
}

// http2Handler prepares HTTP/2 requests as net/http does for its handlers.
type http2Handler struct {
	server *http.Server
	conn   *ossl.Conn
}

func (h *http2Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.TLS == nil { // the request's scheme is not https
		state := h.conn.ConnectionState()
		req.TLS = &state
	}
	handler := h.server.Handler
	if handler == nil {
		handler = http.DefaultServeMux
	}
	if req.RequestURI == "*" && req.Method == http.MethodOptions && !h.server.DisableGeneralOptionsHandler {
		handler = http.HandlerFunc(answerOptions)
	}
	handler.ServeHTTP(w, req)
}

// answerOptions answers "OPTIONS *".
func answerOptions(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Length", "0")
	if req.ContentLength != 0 {
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, req.Body, 4<<10))
	}
}

// stalledHandshake is the time that Shutdown waits for connections without a request: 5 s, as in
// net/http.
const stalledHandshake = 5 * time.Second

func (s *Server) shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.ended = max(s.ended, shuttingDown)
	s.mu.Unlock()
	err := s.Server.Shutdown(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	wait := time.NewTimer(0)
	defer wait.Stop()
	for interval := time.Millisecond; !s.quiet(); interval = min(2*interval, 500*time.Millisecond) {
		wait.Reset(interval)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wait.C:
		}
	}
	return err
}

// quiet reports whether Shutdown has no more connections to wait for. It closes those whose
// handshake takes too long.
func (s *Server) quiet() bool {
	s.mu.Lock()
	left, http2 := 0, false
	var stalled []*ossl.Conn
	for conn, c := range s.conns {
		if !c.http2 && time.Since(c.since) > stalledHandshake {
			stalled = append(stalled, conn)
			delete(s.conns, conn)
			continue
		}
		left++
		http2 = http2 || c.http2
	}
	s.mu.Unlock()
	for _, conn := range stalled {
		_ = conn.Close()
	}
	if http2 { // a connection may have been added since the last call
		s.sendGoAway()
	}
	return left == 0
}

func (s *Server) closeAll() error {
	s.mu.Lock()
	s.ended = closed
	conns := make([]*ossl.Conn, 0, len(s.conns))
	for conn := range s.conns {
		conns = append(conns, conn)
	}
	s.mu.Unlock()
	err := s.Server.Close()
	for _, conn := range conns {
		_ = conn.Close()
	}
	return err
}
