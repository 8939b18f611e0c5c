package terminator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/session"
)

// A Server serves a Config, which can be replaced while it runs.
type Server struct {
	log, access *slog.Logger
	gate        *gate
	sockets     []socket // all that it listens on
	admin       *admin   // nil if there is none
	redirects   []*admin // of plain HTTP
	redirected  atomic.Uint64
	unanswered  complaints // challenges of ACME
	addresses   []net.Addr
	adminAddr   net.Addr
	domain      *domain // nil if the process isn't confined
	unconfined  string  // the reason, if it isn't

	current  atomic.Pointer[generation]
	draining atomic.Bool
	handed   atomic.Bool // another process has the sockets
	mover    *mover      // of connections to that process, or nil; set before Drain, which clears it
	taker    *taker      // of connections of the former process, or nil

	acme                   *acmeKeeper
	limited                complaints // about requests; those about connections are the gate's
	reloads, failedReloads atomic.Uint64
	logWriter              atomic.Pointer[LogWriter]    // nil if nobody counts the log's lines
	sealing                atomic.Pointer[session.Ring] // nil if the TLS library has the ticket keys
	ownKeys                atomic.Pointer[ticketKeys]   // nil if others have the keys too, or the TLS library has them
	redis                  atomic.Pointer[redisStore]   // or nil
	counting               sync.Mutex
	changes                changeCounts // guarded by counting; the changes of former generations' certificates
	crls                   crlStore     // guarded by counting, and by mu for changes
	listChanges            changeCounts // guarded by counting; of lists that are no longer followed

	mu     sync.Mutex // held by Reload and Drain
	state  *sessions
	ending sync.WaitGroup // the generations that shut down
	stop   context.Context
	cut    context.CancelFunc
}

// Start listens on the addresses of a Config, and serves it. log gets the server's messages,
// access the access lines. ctx bounds the start alone.
func Start(ctx context.Context, c *Config, log, access *slog.Logger) (*Server, error) {
	return StartWith(ctx, c, nil, log, access)
}

// StartWith is Start with what [Settle] has returned for the Config. The caller must call its Ready, or
// its Abandon after an error.
func StartWith(ctx context.Context, c *Config, in *Inherited, log, access *slog.Logger) (*Server, error) {
	p, err := c.compile()
	if err != nil {
		return nil, err
	}
	s := &Server{log: log, access: access, acme: newACMEKeeper(log)}
	if in == nil {
		in = &Inherited{unconfined: landlockOff}
	}
	if !in.settled && !p.confinement.off() {
		return nil, errors.New("landlock: the process isn't confined") // the caller's fault
	}
	if err := checkSecrets(p.secrets, p.sites); err != nil {
		return nil, err
	}
	if in.timers != nil {
		log.Info("timers stay as they are", "error", in.timers)
	}
	if err := in.readTicketKeys(); err != nil {
		return nil, err
	}
	s.stop, s.cut = context.WithCancel(context.Background())
	former := in.ticketKeys(p.tls.resumption)
	state, err := newSessions(ctx, &p.tls, former, log)
	if err != nil {
		return nil, err
	}
	if former == nil {
		in.wipeTicketKeys()
	}
	s.state = state
	s.sealing.Store(state.sealing)
	s.redis.Store(state.redis)
	s.ownKeys.Store(state.own)
	var g *generation
	if s.crls, err = loadCRLs(p, nil, log); err == nil {
		g, err = newGeneration(p, state, s.crls, &s.limited, log, access)
	}
	if err != nil {
		s.crls.end(nil)
		state.end()
		return nil, err
	}
	if err = in.unmet; err == nil {
		s.sockets, err = listenAll(p.places, in)
	}
	if err == nil {
		err = s.giveUp(p.user, in)
	}
	if err == nil {
		err = p.acme.tryStorage()
	}
	if err != nil {
		abandonAll(s.sockets)
		g.release()
		s.crls.end(nil)
		state.end()
		return nil, err
	}
	for _, site := range g.sites {
		site.certificates.open()
	}
	g.check(nil)
	s.current.Store(g)
	var sockets []socket
	for _, b := range s.sockets {
		switch {
		case b.is(placeOfAdmin):
			defer s.startAdmin(b.listener, p.tls.engine) // when all that it counts is there
		case b.is(placeOfRedirect):
			s.startRedirect(b.listener)
		default:
			sockets = append(sockets, b)
			s.addresses = append(s.addresses, b.listener.Addr())
		}
	}
	s.gate = newGate(sockets, log)
	s.gate.serve = s.serve
	s.gate.set(p.limits, p.senders)
	s.gate.start()
	s.acme.set(g.acme)
	s.taker = in.takeMoves(s)
	return s, nil
}

// giveUp gives up root's privileges, if another user is configured. Files and ports are given up
// already, by Settle: the user may see less of them.
func (s *Server) giveUp(user string, in *Inherited) (err error) {
	s.domain, s.unconfined = in.domain, in.unconfined
	if s.domain != nil && slices.Contains(s.domain.Read, "/") && !in.TakesOver() {
		s.log.Warn("landlock: all files can be read, because one that the configuration names is in the folder /")
	}
	if user == "" {
		return nil
	}
	if err := become(user); err != nil {
		return err
	}
	s.log.Info("running as", "user", user)
	return nil
}

// Landlock returns the version of Landlock's interface that confines the process, or the reason why
// none does.
func (s *Server) Landlock() string {
	if s.domain == nil {
		return s.unconfined
	}
	return "ABI " + strconv.Itoa(s.domain.ABI)
}

// Addrs returns the addresses that the server listens on, and the administrator's or nil.
func (s *Server) Addrs() (addresses []net.Addr, admin net.Addr) { return s.addresses, s.adminAddr }

// serve hands a client to the current generation. If a generation shuts down, it has a successor, or
// the server stops.
func (s *Server) serve(c *client) {
	for {
		g := s.current.Load()
		if g.take(c) {
			return
		}
		if s.current.Load() == g {
			reset(c.conn)
			c.done()
			return
		}
	}
}

// Reload serves new connections by a Config, and closes the connections of the old one as they become
// idle. If it returns an error, nothing has changed. The addresses must stay as they are.
func (s *Server) Reload(ctx context.Context, c *Config) error {
	err := s.reload(ctx, c)
	if err != nil {
		s.ReloadFailed()
	} else {
		s.reloads.Add(1)
	}
	return err
}

// ReloadFailed counts a reload whose Config could not be read.
func (s *Server) ReloadFailed() { s.failedReloads.Add(1) }

func (s *Server) reload(ctx context.Context, c *Config) error {
	p, err := c.compile()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current.Load()
	if s.draining.Load() {
		return errors.New("the server is ending")
	}
	for i, setting := range p.lasting {
		if setting != old.plan.lasting[i] {
			return fmt.Errorf("%s can't change while the server runs: restart it", setting.name)
		}
	}
	if s.domain != nil {
		if err := s.domain.covers(p.confinement); err != nil {
			return err
		}
	}
	if err := checkSecrets(p.secrets, p.sites); err != nil {
		return err
	}
	if err := p.acme.makeStorage(); err != nil {
		return err
	}
	if err := p.acme.tryStorage(); err != nil {
		return err
	}
	state := s.state
	if state.settings != p.tls.resumption {
		var err error
		if state, err = newSessions(ctx, &p.tls, nil, s.log); err != nil {
			return err
		}
	}
	var g *generation
	lists, err := loadCRLs(p, s.crls, s.log)
	if err == nil {
		g, err = newGeneration(p, state, lists, &s.limited, s.log, s.access)
	}
	if err == nil && state == s.state {
		if err = state.reload(&p.tls); err != nil { // the last thing that may fail
			g.release()
		}
	}
	if err != nil {
		lists.end(s.crls)
		if state != s.state {
			state.end()
		}
		return err
	}
	s.gate.set(p.limits, p.senders)
	g.check(old)
	s.acme.set(g.acme)
	s.counting.Lock()
	s.current.Store(g)
	s.changes = s.changes.plus(old.changes())
	s.listChanges = s.listChanges.plus(s.crls.end(lists))
	s.crls = lists
	s.counting.Unlock()
	before := s.state
	s.state = state
	s.sealing.Store(state.sealing)
	s.redis.Store(state.redis)
	s.ownKeys.Store(state.own)
	s.ending.Go(func() {
		ctx, cancel := context.WithTimeout(s.stop, time.Duration(old.plan.limits.Drain))
		defer cancel()
		if cut := old.end(ctx); cut > 0 {
			s.log.Warn("connections of the former configuration cut off", "number", cut)
		}
		if before != state {
			before.end()
		}
		go runtime.GC() // which doesn't see the memory in C that the old configuration has
	})
	return nil
}

// Drain closes the listeners, finishes the requests and connections under way until ctx is done, and
// cuts off those that are left. It returns their number. Clients that nobody has accepted yet are
// left to the process to which HandOver gave the sockets.
func (s *Server) Drain(ctx context.Context) (cut int) {
	s.draining.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taker != nil {
		s.taker.stop()
	}
	if m := s.mover; m != nil {
		s.mover = nil
		defer moveAll(ctx, m, s.current.Load())()
	}
	if s.handed.Load() && s.admin != nil {
		s.admin.stop()
	}
	for _, r := range s.redirects {
		r.stop()
	}
	s.acme.set(nil)
	s.gate.stop(ctx)
	undo := context.AfterFunc(ctx, s.cut)
	defer undo()
	cut = s.current.Load().end(ctx)
	s.ending.Wait()
	s.crls.end(nil)
	s.state.end()
	for _, r := range s.redirects {
		r.end(ctx)
	}
	if s.admin != nil {
		s.admin.end(ctx)
	}
	s.acme.wait(ctx) // last: the storage may hang
	s.cut()
	return cut
}

// moveAll moves the tunnels of a generation, until the function that it returns is called.
func moveAll(ctx context.Context, m *mover, g *generation) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	g.mover.Store(m)
	g.leaving.Store(true) // so that a connection that can't move is closed after its next response
	go func() {
		m.run(ctx, g)
		close(done)
	}()
	return func() {
		cancel()
		<-done
		m.finish()
	}
}
