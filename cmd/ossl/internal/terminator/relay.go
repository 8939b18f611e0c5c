package terminator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// relay serves a connection of a TCP site: it shakes hands, unless clients have no TLS, connects to
// the backend, and copies the data of both directions until both are closed.
//
// The end of one direction is passed on, and the other one goes on. If one side is cut off or times
// out, the other one gets the data that has come until then, and is cut off too, without close_notify
// and with an RST, so that nobody takes a part of the data for all of it.
func (g *generation) relay(c *client) {
	defer g.forget(c)
	t := &tunnel{client: c.conn}
	if g.engine != nil {
		t.secure = g.engine.server(c.conn)
		t.client = t.secure
	}
	moved, err := g.relayed(c, t)
	if !moved {
		g.endTunnel(c, t, err)
	}
}

// A tunnel is a connection that is passed on.
type tunnel struct {
	client, backend net.Conn // nil if there is none yet
	secure          tlsConn  // the client's, or if that has no TLS the backend's, which is nil before it is there

	name     string  // that the client has asked for
	site     *site   // and which is that of
	member   *member // the backend
	upgraded bool    // it has been a connection of HTTP
	activity activity
	up, down direction // from the client, and to it

	ofClient, ofBackend []byte // was read before
}

// A direction is one of a tunnel's two.
type direction struct {
	passed int64 // bytes
	ended  bool  // and the end was passed on
}

// endTunnel closes the client's connection, and logs it.
func (g *generation) endTunnel(c *client, t *tunnel, err error) {
	if err != nil {
		reset(c.conn) // so that Close can't send close_notify
	}
	_ = t.client.Close()
	if g.plan.accessLog {
		var state tls.ConnectionState
		if t.secure != nil {
			state = t.secure.ConnectionState() // the handshake is complete, or has failed
		}
		version := ""
		if state.HandshakeComplete {
			version = tls.VersionName(state.Version)
		}
		attributes := []any{"client", c.String(), "name", state.ServerName, "received", t.up.passed, "sent", t.down.passed,
			"seconds", time.Since(c.since).Seconds(), "tls", version, "resumed", state.DidResume, "error", errText(err)}
		if g.engine != nil {
			attributes = withIdentity(attributes, state.PeerCertificates)
		}
		g.access.Info("connection", attributes...)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// relayed shakes hands, connects to the backend, and passes data on. It reports whether another process
// goes on with the connection.
func (g *generation) relayed(c *client, t *tunnel) (moved bool, err error) {
	limits := &g.plan.limits
	if g.engine != nil {
		shaking, cancel := context.WithTimeout(g.ctx, time.Duration(limits.Header))
		err = t.secure.HandshakeContext(shaking)
		cancel()
		if err != nil {
			g.logHandshake(c, err)
			return false, err
		}
		state := t.secure.ConnectionState()
		if forChallenge(state) {
			return false, nil
		}
		t.name = state.ServerName
	}
	c.work.begin()
	defer c.work.end()
	site, ok := g.names.get(t.name)
	if !ok {
		return false, errNoSite(t.name) // the handshake has refused it, unless the engine has changed its mind
	}
	t.site = site
	t.backend, t.member, err = site.backends.connect(g.ctx, c)
	if err != nil {
		g.log.Error("backend", logAttributes(err)...)
		return false, err
	}
	defer t.member.leave()
	if g.engine == nil {
		t.secure = t.backend.(tlsConn) // checkPlain demands backends with TLS
	}
	t.activity.note()
	return g.passOn(c, t)
}

// passOn passes data on in both directions until both are closed. It reports whether another process goes
// on with the connection.
func (g *generation) passOn(c *client, t *tunnel) (moved bool, err error) {
	for {
		rest, err := t.both(g, c)
		if rest != nil {
			moved, err = g.hand(c, t)
			rest.resume()
			if !moved && err == nil {
				continue
			}
		}
		if !moved {
			_ = t.backend.Close() // the end of the client's data was passed on before, or has failed
			g.stayed(c)
		}
		return moved, err
	}
}

// connect connects to the backend for a client with an address, which has connected to the address local,
// and shakes hands if the backend has TLS.
func (b *backend) connect(ctx context.Context, client netip.AddrPort, local net.Addr) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.plan.limits.Backend))
	defer cancel()
	conn, err := b.dial(ctx, "", "")
	if err != nil {
		return nil, err
	}
	if b.plan.SendProxy != "" {
		if err = conn.SetWriteDeadline(b.plan.limits.Backend.in()); err == nil {
			err = writeProxyHeader(conn, b.plan.SendProxy, client, local)
		}
	}
	if b.tls == nil || err != nil {
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
	secure := b.tls(conn)
	if err := secure.HandshakeContext(ctx); err != nil {
		reset(conn)
		return nil, err
	}
	return secure, nil
}

// both copies between the client and the backend, and cuts both off if a copy fails. It returns the first
// error, or the rest if both directions do.
func (t *tunnel) both(g *generation, c *client) (whole *rest, err error) {
	idle, ended := g.plan.limits.Idle, 0
	client := &idleConn{Conn: t.client, idle: idle, activity: &t.activity, early: t.ofClient}
	backend := &idleConn{Conn: t.backend, idle: idle, activity: &t.activity, early: t.ofBackend}
	t.ofClient, t.ofBackend = nil, nil // are passed on before a direction rests
	for _, d := range []*direction{&t.up, &t.down} {
		if d.ended {
			ended++
		}
	}
	r := newRest(client, backend, ended)
	c.rest.Store(r)
	defer c.rest.Store(nil)
	var copies sync.WaitGroup
	var first sync.Once
	cut := sync.OnceFunc(func() { reset(socketOf(client.Conn)); reset(socketOf(backend.Conn)) })
	run := func(dst, src *idleConn, d *direction) {
		if d.ended {
			return
		}
		copyErr := d.pass(dst, src)
		switch {
		case copyErr == nil, errors.Is(copyErr, errPaused):
			return
		case hearsNoMore(copyErr):
			// To cut the client off, or to close its socket with data unread in it, would destroy the rest of
			// the answer. The other direction judges the backend's end.
			if src == client {
				discard(src)
			}
			return
		}
		first.Do(func() { err = copyErr })
		switch {
		case !errors.As(copyErr, new(*writeError)): // src is cut off
			awaitTaken(g.ctx, socketOf(dst.Conn), dst.idle)
			cut()
		case isTimeout(copyErr): // dst takes nothing
			awaitTaken(g.ctx, socketOf(src.Conn), src.idle)
			cut()
		default: // dst is cut off. The other direction passes on what dst has sent before, and finds that out too
		}
	}
	copies.Go(func() { run(backend, client, &t.up) })
	run(client, backend, &t.down)
	copies.Wait()
	if err != nil {
		cut()
	}
	if r.whole() {
		whole = r
	}
	return whole, err
}

// pass is pass of package's for a direction that may rest. It returns errPaused if both rest.
func (d *direction) pass(dst, src *idleConn) error {
	for {
		n, err := pass(dst, src)
		d.passed += n
		switch {
		case err == nil:
			d.ended = true
			src.rest.end()
			return nil
		case !errors.Is(err, errPaused):
			src.rest.fail()
			return err
		case src.rest.join():
			return err
		}
	}
}

// awaitTaken waits until the peer of a connection has taken all data that was sent to it, or takes no
// more for some time, or has closed, or until ctx is done. A reset destroys the data that waits in
// this system.
func awaitTaken(ctx context.Context, conn net.Conn, idle Time) {
	last, since := -1, time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		left, known := unsent(conn)
		if !known || left == 0 {
			return
		}
		if left != last {
			last, since = left, time.Now()
		} else if time.Since(since) > time.Duration(idle) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// hearsNoMore reports whether an error of pass means that dst had closed its direction before it
// refused the data: an RST without a FIN before it is ECONNRESET. ENOTCONN is shutdown(2)'s.
func hearsNoMore(err error) bool {
	var write *writeError
	return errors.As(err, &write) && (errors.Is(write, syscall.EPIPE) || errors.Is(write, syscall.ENOTCONN))
}

// discard reads and drops the client's further data, for the idle timeout at most: its backend has
// closed.
func discard(client *idleConn) {
	if err := client.SetReadDeadline(client.idle.in()); err == nil {
		_, _ = io.Copy(io.Discard, client.Conn)
	}
}

// A writeError is the error of a connection that takes no more data.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// pass copies until src is closed, and then closes dst for writing. It has a buffer only while there
// is data.
func pass(dst, src *idleConn) (n int64, err error) {
	for {
		if waited, err := waitReadable(src); waited && err != nil {
			if errors.Is(err, io.EOF) {
				return n, passEnd(dst, src)
			}
			return n, fmt.Errorf("read: %w", err)
		}
		moved, err := passSome(dst, src)
		n += moved
		if errors.Is(err, io.EOF) {
			return n, passEnd(dst, src)
		}
		if err != nil {
			return n, err
		}
	}
}

// passSome copies until src has no more data at hand, which a read that doesn't fill the buffer
// shows.
func passSome(dst, src *idleConn) (n int64, err error) {
	b := buffers{}.Get()
	defer buffers{}.Put(b)
	for {
		m, err := src.Read(b)
		if m > 0 {
			written, err := dst.Write(b[:m])
			n += int64(written)
			if err != nil {
				return n, &writeError{err}
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("read: %w", err)
			}
			return n, err
		}
		if m < len(b)/2 {
			return n, nil
		}
	}
}

// passEnd closes dst for writing, since src has closed its direction.
func passEnd(dst, src *idleConn) error {
	if err := src.writes.confirmEnd(src.Conn); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	err := dst.SetWriteDeadline(dst.idle.in())
	if err == nil {
		err = dst.CloseWrite()
	}
	if err != nil {
		return &writeError{err} // the peer may have closed all of the connection before
	}
	return nil
}
