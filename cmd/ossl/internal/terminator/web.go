package terminator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// newHTTPServer makes the servers of a generation's requests.
func (g *generation) newHTTPServer() error {
	l := &g.plan.limits
	g.http = &http.Server{
		Handler: g,
		// So that "OPTIONS *" is answered by the handler, which logs it.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            time.Duration(l.Header),
		IdleTimeout:                  time.Duration(l.Idle),
		MaxHeaderBytes:               l.HeaderBytes,
		ErrorLog:                     slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
		ConnState:                    g.connState,
		ConnContext:                  g.connContext,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          l.Streams,
			MaxReceiveBufferPerConnection: 256 << 10, // of bodies that a backend is slow to take
			MaxReceiveBufferPerStream:     128 << 10,
			SendPingTimeout:               time.Duration(l.Idle),
			PingTimeout:                   time.Duration(l.Header),
			WriteByteTimeout:              time.Duration(l.Idle),
		},
	}
	return g.http2.configure(g.http)
}

// clientKey is the key of the *client in a request's context.
type clientKey struct{}

func (g *generation) connContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, g.client(conn))
}

// connState gives up the place of a connection that is closed. The place of one that was hijacked, by
// the upgrade to another protocol, is given up when its request is over.
func (g *generation) connState(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(interface{ SetIdle(bool) }); ok && state != http.StateClosed {
		c.SetIdle(state == http.StateNew || state == http.StateIdle)
	}
	c := g.client(conn)
	switch {
	case c == nil:
	case state == http.StateIdle && g.moves(c):
		g.mu.Lock()
		g.ask(c)
		g.mu.Unlock()
	case state == http.StateClosed && c.http1 != nil && c.http1.exit.taken():
		go g.handIdle(c)
	case state == http.StateClosed:
		g.forget(c)
	}
}

// begin notes that a client's request has reached the handler. net/http's StateActive is too
// early: a server that shuts down then drops the request.
func (g *generation) begin(c *client) {
	first := c.begun.CompareAndSwap(false, true)
	if c.http1 != nil {
		c.http1.exit.begin()
	}
	if leaving := g.leaving.Load(); first || leaving {
		g.mu.Lock()
		g.change()
		g.mu.Unlock()
		if first && leaving && c.http2 != nil {
			c.http2.announceEnd()
		}
	}
}

// client returns the client of a TLS connection.
func (g *generation) client(conn net.Conn) *client {
	if c, ok := conn.(interface{ NetConn() net.Conn }); ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.clients[c.NetConn()]
	}
	return nil
}

// shake shakes hands with a client, and gives the connection to the http.Server.
func (g *generation) shake(c *client) {
	secure := g.engine.server(c.conn)
	err := secure.SetDeadline(g.plan.limits.Header.in())
	if err == nil {
		err = secure.HandshakeContext(context.Background()) // if the generation is cut off, it closes the socket, and this fails
	}
	if err == nil {
		err = secure.SetDeadline(time.Time{})
	}
	if err != nil {
		g.logHandshake(c, err)
		answerPlaintext(err)
	} else {
		if state := secure.ConnectionState(); forChallenge(state) {
			g.log.Debug("acme: a challenge is answered", "client", c.String(), "name", state.ServerName)
		} else if state.NegotiatedProtocol == "h2" {
			conn := newHTTP2Conn(secure, func() { g.limited.report(g.log, "http2-frames", c.String()) })
			g.mu.Lock()
			c.http2 = conn
			g.mu.Unlock()
			if g.serveHTTP2(c, conn) {
				return
			}
		} else {
			conn, http1 := forHTTP1(secure, new(exit))
			g.mu.Lock()
			c.http1 = http1
			g.mu.Unlock()
			if g.give.give(conn) {
				return
			}
		}
	}
	_ = secure.Close()
	g.forget(c)
}

// answerPlaintext answers a client that has sent an HTTP request without TLS, as net/http does.
func answerPlaintext(err error) {
	var header tls.RecordHeaderError
	if !errors.As(err, &header) || header.Conn == nil {
		return
	}
	switch string(header.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		_, _ = io.WriteString(header.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
		_ = header.Conn.Close()
	}
}

// ServeHTTP passes a request to the handler of the connection's site.
func (g *generation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(clientKey{}).(*client)
	if c == nil {
		panic(http.ErrAbortHandler) // the generation has shut down
	}
	if r.TLS == nil { // the scheme of an HTTP/2 request is not https
		state := c.http2.ConnectionState()
		r.TLS = &state
	}
	g.begin(c)
	c.work.begin()
	defer c.work.end()
	r.RemoteAddr = c.String()
	pw := newProgressWriter(w, r, c.http1, g.plan.limits.Idle)
	pw.leaving = func() bool { return g.leaving.Load() && !g.moves(c) }
	defer pw.end()
	if g.plan.accessLog {
		defer func() { g.logRequest(c, r, pw) }()
	}
	defer func() {
		if pw.hijacked {
			g.forget(c)
		}
	}()
	r = pw.guardBody(r, int64(g.plan.limits.BodyBytes))
	if !wellFormed(r) || c.http1.refuses() {
		w.Header().Set("Connection", "close")
		http.Error(pw, "400 bad request", http.StatusBadRequest)
		return
	}
	site := g.siteOf(r)
	if site == nil {
		http.Error(pw, "421 misdirected request", http.StatusMisdirectedRequest)
		return
	}
	pw.header = site.plan.header
	if limit := int64(g.plan.limits.BodyBytes); limit > 0 && r.ContentLength > limit {
		refuseBody(pw)
		return
	}
	if r.RequestURI == "*" { // of OPTIONS, which asks for the server as a whole: RFC 9110, section 9.3.7
		pw.Header().Set("Content-Length", "0")
		pw.WriteHeader(http.StatusOK)
		return
	}
	pw.goOn = func(u *upgrade) { g.goOn(c, site, r.TLS.ServerName, u) }
	site.handler.ServeHTTP(pw, r)
}

// goOn passes the data of an upgraded connection on until it is closed in both directions, or another
// process goes on with it.
func (g *generation) goOn(c *client, of *site, name string, u *upgrade) {
	t := &tunnel{client: u.client, backend: u.backend, name: name, site: of, member: u.member, upgraded: true,
		ofClient: u.ofClient, ofBackend: u.ofBackend}
	t.activity.note()
	moved, err := g.passOn(c, t)
	if err != nil {
		reset(c.conn) // so that Close can't send close_notify
	}
	if !moved {
		_ = t.client.Close()
	}
}

// refuseBody answers a request whose body is larger than the limit.
func refuseBody(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	http.Error(w, "413 request entity too large", http.StatusRequestEntityTooLarge)
}

// siteOf returns the site of a request, or nil if the request is for another site than its
// connection: that one's certificate, and its demands on clients, may be others (RFC 9110, section
// 15.5.20).
func (g *generation) siteOf(r *http.Request) *site {
	shaken, ok := g.names.get(r.TLS.ServerName)
	if !ok {
		return nil
	}
	host, _ := hostName(r.Host)
	if asked, ok := g.names.get(host); !ok || asked != shaken {
		return nil
	}
	return shaken
}

// logRequest writes the access line of a request.
func (g *generation) logRequest(c *client, r *http.Request, w *progressWriter) {
	status := w.status
	switch {
	case status != 0:
	case w.hijacked: // by the reverse proxy, which has written the header itself
		status = http.StatusSwitchingProtocols
	default:
		status = http.StatusOK
	}
	attributes := []any{"client", c.String(), "method", r.Method, "host", r.Host, "path", r.URL.Path, "protocol", r.Proto,
		"status", status, "bytes", w.written, "seconds", time.Since(w.start).Seconds(), "tls", tls.VersionName(r.TLS.Version),
		"resumed", r.TLS.DidResume}
	g.access.Info("request", withIdentity(attributes, r.TLS.PeerCertificates)...)
}

// withIdentity adds the identity of a client with a certificate, which the handshake has verified: the
// certificate's subject or, if that is empty, its first name of another kind.
func withIdentity(attributes []any, chain []*x509.Certificate) []any {
	if len(chain) == 0 {
		return attributes
	}
	leaf := chain[0]
	identity := leaf.Subject.String()
	if identity == "" {
		names := slices.Concat(leaf.EmailAddresses, leaf.DNSNames)
		for _, u := range leaf.URIs {
			names = append(names, u.String())
		}
		if len(names) > 0 {
			identity = names[0]
		}
	}
	return append(attributes, "certificate", identity)
}

// A handoff is the listener from which an httpServer gets a generation's connections.
type handoff struct {
	conns chan net.Conn
	done  chan struct{} // closed by Close
	end   func()        // closes done once
}

// give hands a connection to the server, and reports whether it took it.
func (h *handoff) give(conn net.Conn) bool {
	select {
	case h.conns <- conn:
		return true
	case <-h.done:
		return false
	}
}

func (h *handoff) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handoff) Close() error {
	h.end()
	return nil
}

func (h *handoff) Addr() net.Addr { return &net.TCPAddr{} }

// A progressBody is a request's body whose reads have a deadline each.
type progressBody struct {
	io.ReadCloser
	writer *progressWriter
	begun  bool // reading has
	closed atomic.Bool
	limit  int64 // 0 for none
	read   int64
}

// guardBody returns a request for the handler, the reads of whose body must make progress.
// They may have as many bytes as limit, if that isn't 0.
func (w *progressWriter) guardBody(r *http.Request, limit int64) *http.Request {
	if r.ContentLength == 0 {
		w.bodyEnded.Store(true)
	} else {
		r = r.WithContext(r.Context()) // a copy: net/http looks at its own one's body, to answer before it comes
		r.Body = &progressBody{ReadCloser: r.Body, writer: w, limit: limit}
		w.beforeRead(false)
	}
	return r
}

func (b *progressBody) Read(p []byte) (int, error) {
	if !b.writer.beforeRead(!b.begun) {
		return 0, http.ErrBodyReadAfterClose
	}
	b.begun = true
	if b.limit > 0 {
		p = p[:min(int64(len(p)), b.limit-b.read+1)]
	}
	n, err := b.ReadCloser.Read(p)
	if b.read += int64(n); b.limit > 0 && b.read > b.limit {
		n, err = n-1, &http.MaxBytesError{Limit: b.limit}
		b.read--
	}
	b.writer.bodyRead.Store(true)
	if errors.Is(err, io.EOF) {
		b.writer.bodyEnded.Store(true)
		b.writer.afterRead()
	} else if err != nil && !b.closed.Load() { // after Close the error is not the client's
		b.writer.bodyFailed.Store(&err)
	}
	return n, err
}

// Close stops the reading. If the response has begun already, nothing follows the request, and a Read
// that waits for the client is broken off: Close would wait for it, and the response with it.
func (b *progressBody) Close() error {
	b.closed.Store(true)
	if w := b.writer; w.early.Load() && !w.bodyEnded.Load() {
		w.http1.end()
		_ = w.control.SetReadDeadline(time.Unix(1, 0))
	}
	return b.ReadCloser.Close()
}
