package terminator

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A taker takes the tunnels of the former process.
type taker struct {
	moves
	server *Server
	log    *slog.Logger
	taken  atomic.Uint64
	done   chan struct{} // closed when nothing comes any more

	mu     sync.Mutex
	ending bool                // guarded by mu; further offers are refused
	held   map[uint32]*arrival // guarded by mu; those that wait for a go
	former movedCounts         // guarded by mu; of the former process, when it has moved its tunnels
}

// An arrival is a tunnel that the former process still has.
type arrival struct {
	movedTunnel
	socket          net.Conn // the client's
	client, backend net.Conn // with TLS
	behind          net.Conn // the backend's socket
}

// newTaker returns a taker for one end of a Unix socket, whose other end the former process has.
func newTaker(conn *net.UnixConn, s *Server) *taker {
	t := &taker{moves: moves{conn: conn}, server: s, log: s.log, done: make(chan struct{}), held: map[uint32]*arrival{}}
	go t.run()
	return t
}

// run takes tunnels until the former process has no more.
func (t *taker) run() {
	defer close(t.done)
	err := t.take()
	_ = t.conn.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.held {
		a.discard() // the former process is dead, or goes on with it
	}
	if err != nil && !t.ending && !errors.Is(err, io.EOF) {
		t.log.Error("connections of the former process", "error", err)
	}
}

// take takes tunnels until the former process has no more, and closes the socket.
func (t *taker) take() error {
	for {
		f, err := t.read()
		if err != nil {
			return err
		}
		switch f.kind {
		case frameOffer:
			a, reason := t.server.judge(f)
			clear(f.body)
			answer := frame{kind: frameHave, id: f.id}
			t.mu.Lock()
			if reason == "" && t.ending {
				a.discard()
				reason = staysByEnd
			}
			if reason == "" {
				t.held[f.id] = a
			} else {
				answer.kind, answer.body = frameRefuse, []byte(reason)
			}
			t.mu.Unlock()
			if _, err := t.write(answer); err != nil {
				return err
			}
		case frameGo:
			closeAll(f.fds)
			t.mu.Lock()
			a := t.held[f.id]
			delete(t.held, f.id)
			last := t.ending && len(t.held) == 0
			t.mu.Unlock()
			if a == nil {
				return errors.New("a tunnel that wasn't offered")
			}
			t.taken.Add(1)
			t.server.goOn(a)
			if last {
				return nil
			}
		case frameEnd:
			closeAll(f.fds)
			var counts movedCounts
			if err := json.Unmarshal(f.body, &counts); err != nil {
				return err
			}
			t.mu.Lock()
			t.former = counts
			t.mu.Unlock()
			if counts.Moved > 0 || len(counts.Stayed) > 0 {
				t.log.Info("connections of the former process", "moved", counts.Moved, "stayed", counts.Stayed)
			}
			return nil
		default:
			closeAll(f.fds)
			return errors.New("an unknown frame")
		}
	}
}

// stop refuses further tunnels, and waits for those that the former process gives up.
func (t *taker) stop() {
	t.mu.Lock()
	t.ending = true
	none := len(t.held) == 0
	t.mu.Unlock()
	if none {
		_ = t.conn.Close()
	}
	late := time.AfterFunc(movePatience, func() { _ = t.conn.Close() })
	<-t.done
	late.Stop()
}

// counts returns the tunnels of the former process by what became of them.
func (t *taker) counts() (taken uint64, stayed map[string]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken.Load(), maps.Clone(t.former.Stayed)
}

// discard gives up a tunnel without a word to its peers: the former process may go on with it.
func (a *arrival) discard() {
	for _, conn := range []net.Conn{a.socket, a.behind} {
		if conn != nil {
			_ = conn.Close()
		}
	}
	for _, conn := range []net.Conn{a.client, a.backend} {
		if conn != nil {
			_ = conn.Close() // frees the memory in C; it can't send an alert any more
		}
	}
}

// judge returns the tunnel of an offer, or the reason for which it is refused.
func (s *Server) judge(f frame) (a *arrival, reason string) {
	a = new(arrival)
	text, client, backend, err := splitOffer(f.body)
	if err == nil {
		err = json.Unmarshal(text, &a.movedTunnel)
	}
	if err != nil {
		closeAll(f.fds)
		return nil, staysByState
	}
	wanted := 2
	if a.HTTP {
		wanted = 1
	}
	if len(f.fds) != wanted { // those for which there was no place are missing
		closeAll(f.fds)
		return nil, staysByFiles
	}
	g, _, m, reason := s.placeOf(&a.movedTunnel)
	if reason != "" {
		closeAll(f.fds)
		return nil, reason
	}
	sockets := make([]net.Conn, 2)
	for i, fd := range f.fds {
		socket, connErr := connOf(fd)
		if err = errors.Join(err, connErr); connErr == nil {
			sockets[i] = socket
		}
	}
	if a.socket, a.behind = sockets[0], sockets[1]; err != nil {
		a.discard()
		return nil, staysByFiles
	}
	a.client, a.backend = a.socket, a.behind
	if (len(client) > 0) != (g.engine != nil) || (len(backend) > 0) != (m != nil && m.target.tls) {
		err = errors.New("TLS on the wrong side")
	}
	if len(client) > 0 && err == nil {
		a.client, err = g.engine.attach(a.socket, client)
	}
	if len(backend) > 0 && err == nil {
		a.backend, err = m.attach.to(a.behind, backend)
	}
	if err != nil {
		s.log.Debug("a connection of the former process is refused", "client", a.Address.String(), "error", err)
		a.discard()
		return nil, staysByState
	}
	return a, ""
}

// placeOf returns where the current configuration has a tunnel, or the reason why it has no place there.
func (s *Server) placeOf(t *movedTunnel) (g *generation, of *site, m *member, reason string) {
	listens := false
	for _, socket := range s.sockets {
		listens = listens || socket.place == t.Place && socket.is(placeOfTLS)
	}
	if !listens {
		return nil, nil, nil, staysByListen
	}
	g = s.current.Load()
	of, ok := g.names.get(t.Name)
	if !ok || of.plan.http != (t.Upgraded || t.HTTP) || of.backends == nil && !t.HTTP {
		return nil, nil, nil, staysBySite
	}
	if of.demands != t.Demands {
		return nil, nil, nil, staysByDemands
	}
	if t.HTTP {
		return g, of, nil, ""
	}
	for _, m := range of.backends.members {
		if m.name == t.Backend {
			return g, of, m, ""
		}
	}
	return nil, nil, nil, staysByBackend
}

// goOn serves a tunnel that the former process has given up.
func (s *Server) goOn(a *arrival) {
	now := time.Now()
	t := &tunnel{client: a.client, backend: a.backend, name: a.Name, upgraded: a.Upgraded,
		up: direction{a.Up, a.UpEnded}, down: direction{a.Down, a.DownEnded}}
	t.activity.last.Store(now.Add(-a.Idle).UnixNano())
	c := &client{conn: a.socket, address: a.Address, since: now.Add(-a.Age), place: a.Place}
	c.begun.Store(a.Begun || !a.HTTP)
	s.gate.adopt(c)
	for {
		g, site, m, reason := s.placeOf(&a.movedTunnel)
		if reason == "" {
			t.site, t.member = site, m
			if t.secure, _ = a.client.(tlsConn); t.secure == nil {
				t.secure, _ = a.backend.(tlsConn)
			}
			if a.HTTP && g.takeIdle(c, t.secure, a.Idle) || !a.HTTP && g.takeTunnel(c, t) {
				return
			}
		}
		if reason != "" || s.current.Load() == g { // a reload has just removed its place
			s.log.Warn("a connection of the former process has no place any more", "client", c.String(), "reason", reason)
			reset(a.socket)
			if a.behind != nil {
				reset(a.behind)
			}
			a.discard()
			c.done()
			return
		}
	}
}

// takeIdle begins to serve an HTTP/1.1 connection of the former process, which has been idle for some time,
// and reports whether it does.
func (g *generation) takeIdle(c *client, secure tlsConn, idle time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ending {
		return false
	}
	g.clients[c.conn] = c
	l := &g.plan.limits
	c.work.idleSince.Store(time.Now().Add(-idle).UnixNano())
	go func() {
		e := &exit{first: time.Now().Add(time.Duration(l.Idle) - idle), header: time.Duration(l.Header)}
		if !g.serveHTTP1(c, secure, e) {
			g.forget(c)
		}
	}()
	return true
}

// takeTunnel begins to serve a tunnel of the former process, and reports whether it does.
func (g *generation) takeTunnel(c *client, t *tunnel) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ending {
		return false
	}
	g.clients[c.conn] = c
	go func() {
		defer g.forget(c)
		c.work.begin()
		defer c.work.end()
		t.member.join()
		defer t.member.leave()
		if t.upgraded && c.address.IsValid() {
			defer t.site.backends.shares.join(sourceOf(c.address.Addr()))()
		}
		if moved, err := g.passOn(c, t); !moved {
			g.endTunnel(c, t, err)
		}
	}()
	return true
}
