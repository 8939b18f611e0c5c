package terminator

import (
	"context"
	"net"
	"sync"
	"time"
)

// An exit is the way out of net/http for an HTTP/1.1 connection, which then moves to another process. Between
// two requests net/http holds nothing of the connection, and waits in a Read. When that times out, net/http
// closes the connection, and forgets it.
type exit struct {
	mu       sync.Mutex
	idle     bool      // guarded by mu; net/http waits for a request, or reads its header
	reading  bool      // guarded by mu; a request has begun, and hasn't reached the handler
	shut     bool      // guarded by mu; the connection can't move
	open     bool      // guarded by mu; the connection shall leave
	left     bool      // guarded by mu
	deadline time.Time // guarded by mu; of Reads, unless the connection shall leave
	// first is the time until which the next request of a connection from another process may begin, or zero:
	// net/http takes it for the first request of a new connection, which has header only.
	first  time.Time     // guarded by mu
	header time.Duration // for the header of that request
}

// What has become of a Read that has timed out.
type exitResult int

const (
	exitNone   exitResult = iota // net/http's own deadline is over
	exitTaken                    // the connection leaves
	exitClosed                   // it doesn't, since a request has begun, or it shall stay; the Read goes on
)

// ask asks a connection to leave as soon as it is between two requests.
func (e *exit) ask(conn net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.idle && !e.shut && !e.open {
		e.open = true
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // wakes the Read; that of a closed connection has an error anyway
	}
}

// setIdle notes whether net/http waits for a further request. between means that none has begun.
func (e *exit) setIdle(conn net.Conn, idle, between bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.idle = idle; idle {
		e.reading = !between
	} else {
		e.close(conn)
	}
}

// heard notes that the client has sent something.
func (e *exit) heard(conn net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading = e.reading || e.idle
	if !e.first.IsZero() {
		e.first, e.deadline = time.Time{}, time.Now().Add(e.header)
		_ = conn.SetReadDeadline(e.deadline)
	}
	e.close(conn)
}

// close keeps a connection from leaving that has been asked to. e.mu is held.
func (e *exit) close(conn net.Conn) {
	if e.open {
		e.open = false
		_ = conn.SetReadDeadline(e.deadline)
	}
}

// take decides about a Read that has timed out. between means that no request has begun.
func (e *exit) take(conn net.Conn, between bool) exitResult {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !e.open && (e.deadline.IsZero() || time.Now().Before(e.deadline)): // stay came after the Read
		_ = conn.SetReadDeadline(e.deadline)
		return exitClosed
	case !e.open:
		return exitNone
	case !between:
		e.close(conn)
		return exitClosed
	}
	e.left = true
	return exitTaken
}

// stays reports whether the connection can't move.
func (e *exit) stays() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shut
}

// stay keeps a connection from leaving, unless it has left.
func (e *exit) stay(conn net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shut = true
	e.close(conn)
}

// begin notes that a request has reached the handler.
func (e *exit) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading = false
}

// reads reports whether a part of a request has come, which may be all but the end of its header.
func (e *exit) reads() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reading
}

// waits reports whether net/http waits for a request, of which nothing has come.
func (e *exit) waits() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.idle && !e.reading && !e.left
}

// taken reports whether the connection has left net/http.
func (e *exit) taken() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.left
}

// setDeadline sets net/http's deadline.
func (e *exit) setDeadline(conn net.Conn, t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t.Before(e.first) && !t.IsZero() && time.Until(t) > 0 { // not one that wakes a Read
		t = e.first
	}
	if e.deadline = t; e.open {
		return nil
	}
	return conn.SetReadDeadline(t)
}

// moves reports whether an HTTP/1.1 connection moves to another process when it is idle.
func (g *generation) moves(c *client) bool {
	m := g.mover.Load()
	if m == nil || g.settled.Load() || c.http1 == nil || c.http1.exit.stays() {
		return false
	}
	select {
	case <-m.dead:
		return false
	default:
		return true
	}
}

// askIdle asks the idle HTTP/1.1 connections to leave net/http.
func (g *generation) askIdle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.clients {
		g.ask(c)
	}
}

// ask asks a connection to leave net/http if it is an idle HTTP/1.1 connection that moves. g.mu is held.
func (g *generation) ask(c *client) {
	if g.moves(c) {
		c.http1.exit.ask(c.http1.Conn)
	}
}

// settle keeps connections from leaving net/http. It waits for those that are on their way to the other
// process, each of which moves or comes back, and reports whether there were any.
func (g *generation) settle(ctx context.Context) (any bool) {
	g.mu.Lock()
	g.settled.Store(true)
	for _, c := range g.clients {
		if c.http1 != nil {
			c.http1.exit.stay(c.http1.Conn)
			any = any || onItsWay(c)
		}
	}
	g.mu.Unlock()
	g.await(ctx, onItsWay)
	return any
}

func onItsWay(c *client) bool { return c.http1 != nil && c.http1.exit.taken() }

// closeIdle closes the HTTP/1.1 connections that wait for another request. net/http would also close those
// that have sent a part of it. It would leave those that come from another process, or back from handIdle,
// which are new ones to it, and drop their next request.
func (g *generation) closeIdle() {
	g.mu.Lock()
	var idle []*http1Conn
	for _, c := range g.clients {
		if c.http1 != nil && c.begun.Load() && c.http1.exit.waits() {
			idle = append(idle, c.http1)
		}
	}
	g.mu.Unlock()
	for _, conn := range idle {
		_ = conn.Close()
	}
}

// handIdle moves an HTTP/1.1 connection that has left net/http. If it can't move, net/http goes on with it.
func (g *generation) handIdle(c *client) {
	m, secure := g.mover.Load(), c.http1.secure
	t := &tunnel{client: secure, secure: secure, name: secure.ConnectionState().ServerName}
	t.activity.last.Store(c.work.idleSince.Load())
	var ok, moved bool
	var err error
	if t.site, ok = g.names.get(t.name); ok {
		m.places <- struct{}{} // waits for answers, each of which comes in time
		moved, err = g.hand(c, t)
		<-m.places
	}
	if moved || err != nil || !g.serveHTTP1(c, t.client.(tlsConn), &exit{shut: true}) {
		g.forget(c)
	}
}

// serveHTTP1 gives a connection to net/http. If that takes it no more, serveHTTP1 closes it, and returns false.
func (g *generation) serveHTTP1(c *client, secure tlsConn, e *exit) bool {
	conn, http1 := forHTTP1(secure, e)
	g.mu.Lock()
	c.http1 = http1
	g.change()
	g.mu.Unlock()
	if !g.give.give(conn) {
		_ = secure.Close()
		return false
	}
	return true
}
