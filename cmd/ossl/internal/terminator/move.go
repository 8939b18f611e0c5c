package terminator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ossl-go/ossl"
)

// At a restart, tunnels move to the new process, which Linux gives the sockets of the client and of the
// backend, over a Unix socket. Package handover moves single connections; the two of a tunnel must move
// together, and the new process may refuse them, since its configuration is another one.
//
//	former process                       new process
//	both directions rest
//	TLS states, sockets       --offer->  checks the configuration, attaches the states
//	                          <-have---  or refuse, with a reason: the former process goes on
//	closes its sockets        ---go--->  passes data on
//
// Before "go" the new process reads and writes nothing, and after it the former one doesn't: a record's
// number is never used twice. If the former process gets no answer, it closes the Unix socket, so that
// no "go" can follow, and goes on with the tunnel. If one of them dies, the tunnels are whole or closed.
//
// HTTP/1.1 connections between two requests move in the same way, as tunnels without a backend: exit.

const (
	// movePatience is the time in which the other process must take a frame, and answer it.
	movePatience = 5 * time.Second
	// restPatience is the time in which both directions must come to rest. While one doesn't, because its
	// peer takes no data, the other one waits.
	restPatience = 50 * time.Millisecond
	// offersAtOnce bounds the tunnels that rest at a time. With more, each rests longer.
	offersAtOnce = 8
	// lookPause is the time between two looks for tunnels that can move.
	lookPause = 100 * time.Millisecond
	// mostPause is the longest time between two tries to bring a tunnel to rest.
	mostPause = 10 * time.Second
)

// The reasons for which tunnels stay with the former process. The other ones are in the state's errors.
const (
	staysByEngine  = "engine"      // crypto/tls
	staysBusy      = "busy"        // it doesn't come to rest
	staysByListen  = "listen"      // the new process doesn't listen where the client has connected
	staysBySite    = "site"        // the name belongs to no site, or has another kind of backends
	staysByDemands = "settings"    // the site demands other certificates, or has another policy
	staysByBackend = "backend"     // the site doesn't have the backend any more
	staysByState   = "state"       // the new process doesn't understand the state
	staysByFiles   = "descriptors" // too many files are open in the new process
	staysByEnd     = "ending"      // the new process is ending
	staysByChannel = "unanswered"  // the new process is dead, or hangs
)

// A movedTunnel describes a tunnel, without its sockets and TLS states.
type movedTunnel struct {
	Place     string         `json:"place"` // where the client has connected
	Name      string         `json:"name"`  // that it has asked for
	Demands   string         `json:"demands"`
	Backend   string         `json:"backend"`
	Address   netip.AddrPort `json:"address"` // the client's
	Age       time.Duration  `json:"age"`
	Idle      time.Duration  `json:"idle"`  // since the last progress
	HTTP      bool           `json:"http"`  // between two requests of HTTP/1.1; there is no backend
	Begun     bool           `json:"begun"` // there was a request
	Upgraded  bool           `json:"upgraded"`
	Up        int64          `json:"up"` // bytes
	Down      int64          `json:"down"`
	UpEnded   bool           `json:"upEnded"`
	DownEnded bool           `json:"downEnded"`
}

// movedCounts are the tunnels of a process that is replaced.
type movedCounts struct {
	Moved  uint64            `json:"moved"`
	Stayed map[string]uint64 `json:"stayed"` // by reason
}

// A mover moves the tunnels of a process to the one that replaces it.
type mover struct {
	moves
	log    *slog.Logger
	places chan struct{} // of tunnels that rest
	dead   chan struct{} // closed when no answer comes any more
	kill   func(error)   // closes dead once

	mu      sync.Mutex
	last    uint32                 // guarded by mu
	answers map[uint32]chan string // guarded by mu; the reason of a refusal, or ""
	counts  movedCounts            // guarded by mu
}

// newMover returns a mover for one end of a Unix socket, whose other end the new process has.
func newMover(conn *net.UnixConn, log *slog.Logger) *mover {
	m := &mover{moves: moves{conn: conn}, log: log, places: make(chan struct{}, offersAtOnce), dead: make(chan struct{}),
		answers: map[uint32]chan string{}, counts: movedCounts{Stayed: map[string]uint64{}}}
	var once sync.Once
	m.kill = func(err error) {
		once.Do(func() {
			if err != nil {
				log.Warn("the new process takes no more connections", "error", err)
			}
			close(m.dead)
			_ = conn.Close() // so that no go can follow
		})
	}
	go m.hear()
	return m
}

// hear reads the answers.
func (m *mover) hear() {
	for {
		f, err := m.read()
		if err != nil {
			m.kill(err)
			return
		}
		closeAll(f.fds)
		m.mu.Lock()
		answer := m.answers[f.id]
		delete(m.answers, f.id)
		m.mu.Unlock()
		switch {
		case answer != nil && f.kind == frameHave:
			answer <- ""
		case answer != nil && f.kind == frameRefuse && len(f.body) > 0:
			answer <- string(f.body)
		default:
			m.kill(fmt.Errorf("an unexpected frame %q", f.kind))
			return
		}
	}
}

// run asks the tunnels of a generation to rest, from time to time, until ctx is done. Their own
// goroutines then move them.
func (m *mover) run(ctx context.Context, g *generation) {
	type try struct {
		at    time.Time // of the next one
		pause time.Duration
	}
	tries := map[*client]*try{}
	answered := false
	ticker := time.NewTicker(lookPause)
	defer ticker.Stop()
	for {
		g.askIdle()
		for _, c := range g.tunnels() {
			now := time.Now()
			t := tries[c]
			if t == nil {
				t = &try{pause: lookPause / 2}
				tries[c] = t
			}
			r := c.rest.Load()
			if r == nil || now.Before(t.at) {
				continue
			}
			select {
			case m.places <- struct{}{}:
			case <-m.dead:
				return
			case <-ctx.Done():
				return
			}
			t.pause = min(2*t.pause, mostPause)
			t.at = now.Add(t.pause)
			tried := make(chan struct{})
			if !r.begin(restPatience, func() { <-m.places; close(tried) }) {
				<-m.places
				continue
			}
			if !answered {
				// The first one is alone: a new process whose start isn't quite over makes no others wait.
				select {
				case <-tried:
				case <-ctx.Done():
					return
				}
				answered = true
			}
		}
		select {
		case <-ticker.C:
		case <-m.dead:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (m *mover) count(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// reasonOf returns the reason why TLS of a connection can't move.
func reasonOf(err error) string {
	var refused *ossl.DetachError
	if errors.As(err, &refused) {
		return refused.Reason
	}
	return staysBusy // the time is over, or the next read or write meets the error
}

// finish tells the new process, and the log, how many tunnels have moved and how many have stayed.
func (m *mover) finish() {
	m.mu.Lock()
	counts := movedCounts{m.counts.Moved, maps.Clone(m.counts.Stayed)}
	m.mu.Unlock()
	text, err := json.Marshal(counts)
	if err == nil {
		_, err = m.write(frame{kind: frameEnd, body: text})
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		m.log.Warn("the new process doesn't learn which connections have moved", "error", err)
	}
	m.kill(nil)
	if counts.Moved == 0 && len(counts.Stayed) == 0 {
		return
	}
	m.log.Info("connections moved to the new process", "number", counts.Moved)
	for reason, n := range counts.Stayed {
		m.log.Warn("connections stayed with this process", "reason", reason, "number", n)
	}
}

// hand moves a tunnel that rests. If it can't move, hand reports that and the tunnel goes on; an error
// means that it is lost.
func (g *generation) hand(c *client, t *tunnel) (moved bool, err error) {
	m := g.mover.Load()
	if m == nil {
		return false, nil
	}
	states, reason := g.detach(t)
	defer func() {
		for _, state := range states {
			clear(state)
		}
	}()
	if reason == "" {
		moved, reason = m.offer(c, t, states)
	}
	if moved {
		_, _ = t.client.Close(), c.conn.Close() // without an alert, if it has TLS
		if t.backend != nil {
			_, _ = t.backend.Close(), socketOf(t.backend).Close()
		}
		return true, nil
	}
	c.stays.Store(&reason)
	g.log.Debug("a connection stays with this process", "client", c.String(), "reason", reason)
	return false, g.attach(c, t, states)
}

// stayed counts a tunnel that is over and has not moved. One that has ended by itself counts if it was
// refused.
func (g *generation) stayed(c *client) {
	m := g.mover.Load()
	if m == nil {
		return
	}
	reason := c.stays.Load()
	if reason == nil && g.ctx.Err() != nil { // it was cut off
		late := staysBusy
		select {
		case <-m.dead:
			late = staysByChannel
		default:
		}
		reason = &late
	}
	if reason != nil {
		m.count(func() { m.counts.Stayed[*reason]++ })
	}
}

// detach detaches TLS from both connections. It returns the states: the client's, and the backend's. A
// connection without TLS has none. If there is a reason, the connections without a state go on.
func (g *generation) detach(t *tunnel) (states [2][]byte, reason string) {
	ctx, cancel := context.WithTimeout(g.ctx, restPatience)
	defer cancel()
	for i, conn := range []net.Conn{t.client, t.backend} {
		if _, ok := conn.(tlsConn); !ok {
			continue
		}
		secure, ok := conn.(*ossl.Conn)
		if !ok {
			return states, staysByEngine
		}
		var err error
		if states[i], err = secure.Detach(ctx); err != nil {
			return states, reasonOf(err)
		}
	}
	return states, ""
}

// attach goes on with the connections of which there are states.
func (g *generation) attach(c *client, t *tunnel, states [2][]byte) (err error) {
	if states[0] != nil {
		var secure tlsConn
		if secure, err = g.engine.attach(c.conn, states[0]); err == nil {
			t.client, t.secure = secure, secure
		}
	}
	if states[1] != nil && err == nil {
		var secure tlsConn
		if secure, err = t.member.attach.to(socketOf(t.backend), states[1]); err == nil {
			t.backend = secure
			if g.engine == nil {
				t.secure = secure
			}
		}
	}
	if err != nil { // such as memory that is short
		g.log.Error("a connection that could not move is lost", "client", c.String(), "error", err)
		reset(c.conn)
		if t.backend != nil {
			reset(socketOf(t.backend))
		}
	}
	return err
}

// offer offers a tunnel to the new process, and reports whether that goes on with it, or the reason why
// not.
func (m *mover) offer(c *client, t *tunnel, states [2][]byte) (moved bool, reason string) {
	now := time.Now()
	about := movedTunnel{Place: c.place, Name: t.name, Demands: t.site.demands, Address: c.address, Age: now.Sub(c.since),
		Idle: now.Sub(time.Unix(0, t.activity.last.Load())), HTTP: t.backend == nil, Begun: c.begun.Load(), Upgraded: t.upgraded,
		Up: t.up.passed, Down: t.down.passed, UpEnded: t.up.ended, DownEnded: t.down.ended}
	sockets := []net.Conn{c.conn}
	if t.backend != nil {
		about.Backend = t.member.name
		sockets = append(sockets, socketOf(t.backend))
	}
	text, err := json.Marshal(about)
	if err != nil {
		return false, staysByState
	}
	var fds []int
	for _, socket := range sockets {
		f, err := duplicate(socket)
		if err != nil {
			return false, staysByFiles
		}
		defer f.Close()
		fds = append(fds, int(f.Fd()))
	}
	body := appendOffer(make([]byte, 0, 12+len(text)+len(states[0])+len(states[1])), text, states[0], states[1])
	defer clear(body)
	if len(body) > maxOffer {
		return false, staysByState
	}
	answer := make(chan string, 1)
	m.mu.Lock()
	m.last++
	id := m.last
	m.answers[id] = answer
	m.mu.Unlock()
	if _, err := m.write(frame{frameOffer, id, body, fds}); err != nil {
		m.kill(err)
		return false, staysByChannel
	}
	late := time.NewTimer(movePatience)
	defer late.Stop()
	select {
	case reason := <-answer:
		if reason != "" {
			return false, reason
		}
	case <-late.C:
		m.kill(errors.New("it doesn't answer"))
		return false, staysByChannel
	case <-m.dead:
		return false, staysByChannel
	}
	if sent, err := m.write(frame{kind: frameGo, id: id}); err != nil {
		m.kill(err)
		if !sent {
			return false, staysByChannel
		}
	}
	m.count(func() { m.counts.Moved++ })
	return true, ""
}
