package terminator

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/connstate"
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

// The kinds of frames, the first bytes of their headers.
const (
	frameOffer  = 'o'
	frameGo     = 'g'
	frameEnd    = 'e' // the former process has moved all that can move; a movedCounts in JSON
	frameHave   = 'h'
	frameRefuse = 'r' // a reason
)

// A header of a frame has its kind, the number of the tunnel, and the length of what follows.
const frameHeaderLen = 1 + 4 + 4

// maxOffer bounds the bytes of an offer: both states may have data that waits.
const maxOffer = 4 << 20

// movesVersion is the version of the frames. A process that takes tunnels writes it when it is ready;
// others write 1.
const movesVersion = 2

const (
	// movePatience is the time in which the other process must take a frame, and answer it.
	movePatience = 5 * time.Second
	// restPatience is the time in which both directions must come to rest. While one doesn't, because its
	// peer takes no data, the other one waits.
	restPatience = 50 * time.Millisecond
	// offersAtOnce bounds the tunnels that rest at a time.
	offersAtOnce = 32
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

// demands returns a hash of the settings by which clients and backends are admitted: a connection that was
// admitted by others doesn't move. sum is that of the files of the clients' authorities.
func (s *sitePlan) demands(tls *tlsPlan, sum []byte) (string, error) {
	settings := []any{tls.engine, tls.policy.name, tls.plain, tls.fips, tls.crls.files, tls.crls.soft, s.ALPN,
		s.ClientCA, sum, s.ClientOptional, s.ClientAllow}
	if b := s.backends; b != nil {
		settings = append(settings, b.CA, b.Name, b.Cert, b.Key, b.CRLs, b.CRLSoftFail)
		if b.CA != "" {
			_, sum, err := readPoolAndSum([]string{b.CA})
			if err != nil {
				return "", err
			}
			settings = append(settings, sum)
		}
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%q", settings))
	return hex.EncodeToString(hash[:]), nil
}

// A frame is a message between the two processes.
type frame struct {
	kind byte
	id   uint32
	body []byte
	fds  []int // of an offer: the client's socket, and the backend's if there is one
}

// A moves is one end of the Unix socket between the two processes.
type moves struct {
	conn    *net.UnixConn
	writing sync.Mutex
}

// write writes a frame. It reports whether the other process may have got it.
func (m *moves) write(f frame) (sent bool, err error) {
	m.writing.Lock()
	defer m.writing.Unlock()
	if err := m.conn.SetWriteDeadline(time.Now().Add(movePatience)); err != nil {
		return false, err
	}
	header := binary.BigEndian.AppendUint32([]byte{f.kind}, f.id)
	header = binary.BigEndian.AppendUint32(header, uint32(len(f.body)))
	n, _, err := m.conn.WriteMsgUnix(header, rights(f.fds), nil)
	if err == nil && n < len(header) {
		err = io.ErrShortWrite
	}
	if err == nil && len(f.body) > 0 {
		_, err = m.conn.Write(f.body)
	}
	return n == len(header), err
}

// read reads a frame.
func (m *moves) read() (f frame, err error) {
	var header [frameHeaderLen]byte
	for have := 0; have < len(header); {
		n, fds, err := readRights(m.conn, header[have:])
		f.fds = append(f.fds, fds...)
		if err == nil && n == 0 {
			err = io.EOF
		}
		if err != nil {
			closeAll(f.fds)
			return frame{}, err
		}
		have += n
	}
	f.kind, f.id = header[0], binary.BigEndian.Uint32(header[1:])
	length := binary.BigEndian.Uint32(header[5:])
	if length > maxOffer {
		err = fmt.Errorf("a frame of %d bytes", length)
	} else {
		f.body = make([]byte, length)
		_, err = io.ReadFull(m.conn, f.body)
	}
	if err != nil {
		closeAll(f.fds)
		clear(f.body)
		return frame{}, err
	}
	return f, nil
}

// appendOffer appends the parts of an offer, each with its length.
func appendOffer(to []byte, parts ...[]byte) []byte {
	for _, part := range parts {
		to = binary.BigEndian.AppendUint32(to, uint32(len(part)))
		to = append(to, part...)
	}
	return to
}

// splitOffer splits an offer into its parts.
func splitOffer(body []byte) (text, client, backend []byte, err error) {
	parts := []*[]byte{&text, &client, &backend}
	for _, part := range parts {
		if len(body) < 4 || uint32(len(body)-4) < binary.BigEndian.Uint32(body) {
			return nil, nil, nil, io.ErrUnexpectedEOF
		}
		end := 4 + binary.BigEndian.Uint32(body)
		*part, body = body[4:end:end], body[end:]
	}
	if len(body) > 0 {
		return nil, nil, nil, errors.New("data behind an offer")
	}
	return text, client, backend, nil
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
			if !r.begin(restPatience, func() { <-m.places }) {
				<-m.places
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

// sendOnUse returns a state whose tickets wait for the first read or write. Those of a client that has got no
// data yet would be sent after a second, also by a process that must not use the connection before it is told
// to go on.
func sendOnUse(state []byte) ([]byte, error) {
	s, err := connstate.Decode(state)
	if err != nil {
		return state, err
	}
	defer func() { *s = connstate.State{} }() // wipes the secrets
	if !s.Held || len(s.Output) == 0 {
		return state, nil
	}
	s.Held = false
	sending, err := s.Encode()
	if err != nil {
		return state, err
	}
	clear(state)
	return sending, nil
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
		if states[i], err = sendOnUse(states[i]); err != nil {
			return states, staysByState
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

// moves reports whether an HTTP/1.1 connection moves to another process when it is idle.
func (g *generation) moves(c *client) bool {
	m := g.mover.Load()
	if m == nil || c.http1 == nil || c.http1.exit.stays() {
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
		if g.moves(c) {
			c.http1.exit.ask(c.http1.Conn)
		}
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
	g.mu.Unlock()
	if !g.give.give(conn) {
		_ = secure.Close()
		return false
	}
	return true
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
