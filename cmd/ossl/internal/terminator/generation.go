package terminator

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A generation is a configuration in effect, with the connections that began under it.
type generation struct {
	plan    *plan
	log     *slog.Logger
	access  *slog.Logger
	limited *complaints
	sites   []*site
	names   namedSites[*site]
	engine  *engine // nil if clients have no TLS
	acme    []*acmeJob
	http    *http.Server // nil for TCP sites
	http2   http2Server
	give    *handoff // to http

	ctx    context.Context // done when the connections must be closed
	cancel context.CancelFunc

	checking   context.Context // done when the backends aren't checked any more
	stopChecks context.CancelFunc

	mu      sync.Mutex
	clients map[net.Conn]*client  // guarded by mu; by the connection under TLS
	ending  bool                  // guarded by mu
	mover   atomic.Pointer[mover] // or nil
	leaving atomic.Bool           // like ending; clients are told that their connections will be closed
	settled atomic.Bool           // HTTP/1.1 connections don't move any more
	changed chan struct{}         // guarded by mu; if it isn't nil, it is closed when a client changes
}

// A site is a Site in effect.
type site struct {
	plan         *sitePlan
	demands      string // sitePlan.demands
	certificates *certificates
	authorities  *x509.CertPool // of clients, as the files had them; nil if clients need no certificate
	handler      http.Handler   // of an HTTP site
	backends     *backends      // nil for folders
	close        []func()
}

// newGeneration prepares a configuration. Nothing is listening yet, and nothing has changed if it
// returns an error. limited counts the requests that meet a limit.
func newGeneration(
	p *plan, state *sessions, lists crlStore, limited *complaints, log, access *slog.Logger,
) (*generation, error) {
	g := &generation{plan: p, log: log, access: access, limited: limited, clients: map[net.Conn]*client{}}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.checking, g.stopChecks = context.WithCancel(g.ctx)
	if err := g.prepare(state, lists); err != nil {
		g.release()
		return nil, err
	}
	if g.engine != nil && g.engine.compile != nil {
		go g.engine.watch(g.ctx)
	}
	if g.http != nil {
		go func() {
			if err := g.http.Serve(g.give); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				log.Error("http", "error", err)
				g.give.end()
			}
		}()
	}
	return g, nil
}

// check begins to check the backends, which keep their state if a former generation had them too.
func (g *generation) check(former *generation) {
	if former != nil {
		former.stopChecks()
	}
	for _, s := range g.sites {
		if s.backends == nil {
			continue
		}
		if former != nil {
			for _, old := range former.sites {
				if old.backends != nil && old.plan.name() == s.plan.name() {
					s.backends.adopt(old.backends)
				}
			}
		}
		s.backends.watch(g.checking)
	}
}

// prepare makes the parts of a generation.
func (g *generation) prepare(state *sessions, lists crlStore) error {
	if err := g.plan.acme.makeStorage(); err != nil {
		return err
	}
	parts := &sharedParts{cache: newFileCache(g.plan.limits.FileCacheBytes), secrets: newSecretFiles(g.plan.secrets),
		certificates: map[string]*certificates{}, authorities: map[string]authorities{}, lists: lists}
	for _, p := range g.plan.sites {
		s := &site{plan: p}
		if err := g.prepareSite(s, parts); err != nil {
			return p.fault(err)
		}
		g.sites = append(g.sites, s)
		g.names.add(p.Names, s)
	}
	var err error
	if g.acme, err = g.plan.acme.jobs(); err != nil {
		return err
	}
	if g.plan.tls.plain {
		return nil // a TCP site
	}
	if g.engine, err = newEngine(&g.plan.tls, g.sites, state, lists, newTLSChallenges(g.plan.acme), g.log); err != nil {
		return err
	}
	if g.plan.sites[0].http {
		g.give = &handoff{conns: make(chan net.Conn), done: make(chan struct{})}
		g.give.end = sync.OnceFunc(func() { close(g.give.done) })
		if err := g.newHTTPServer(); err != nil {
			return err
		}
	}
	return nil
}

// sharedParts are the parts of a generation that its sites share.
type sharedParts struct {
	cache        *fileCache
	secrets      *secretFiles
	certificates map[string]*certificates // by the names of their pairs
	authorities  map[string]authorities   // by the names of their files
	lists        crlStore
}

// authorities are those of clients.
type authorities struct {
	pool *x509.CertPool
	sum  []byte // of the files
}

// prepareSite makes the parts of a site.
func (g *generation) prepareSite(s *site, parts *sharedParts) (err error) {
	p := s.plan
	pairs := fmt.Sprintf("%q", p.Pairs)
	if p.ACME {
		s.certificates = awaitCertificate(g.plan.acme, &p.Site, g.plan.tls.policy, g.log)
	} else if s.certificates = parts.certificates[pairs]; s.certificates == nil {
		if s.certificates, err = loadCertificates(p.Pairs, g.plan.tls.policy, g.log); err != nil {
			return err
		}
		parts.certificates[pairs] = s.certificates
	}
	var sum []byte
	if files := fmt.Sprintf("%q", p.ClientCA); len(p.ClientCA) > 0 {
		if parts.authorities[files].pool == nil {
			pool, sum, err := readPoolAndSum(p.ClientCA)
			if err != nil {
				return err
			}
			parts.authorities[files] = authorities{pool, sum}
		}
		s.authorities, sum = parts.authorities[files].pool, parts.authorities[files].sum
	}
	if s.demands, err = p.demands(&g.plan.tls, sum); err != nil {
		return err
	}
	if p.backends == nil {
		files, err := newFileHandler(&p.Site, parts.secrets, parts.cache, g.log)
		if err != nil {
			return err
		}
		s.handler = files
		s.close = append(s.close, files.close)
		return nil
	}
	if s.backends, err = newBackends(p.backends, parts.lists, g.log); err != nil || !p.http {
		return err
	}
	s.handler = reverseHandler(s.backends, g.limited, g.log)
	s.close = append(s.close, s.backends.closeIdle)
	return nil
}

// take begins to serve a client, and reports whether it does: a generation that shuts down takes no
// more.
func (g *generation) take(c *client) bool {
	g.mu.Lock()
	if g.ending {
		g.mu.Unlock()
		return false
	}
	g.clients[c.conn] = c
	g.mu.Unlock()
	if g.http == nil {
		go g.relay(c)
	} else {
		go g.shake(c)
	}
	return true
}

// forget removes a client from the books, and gives its place to another one.
func (g *generation) forget(c *client) {
	g.drop(c)
	c.done()
}

func (g *generation) drop(c *client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.clients, c.conn)
	g.change()
}

// tunnels returns the clients whose connections are passed on.
func (g *generation) tunnels() (all []*client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.clients {
		if c.rest.Load() != nil {
			all = append(all, c)
		}
	}
	return all
}

// change wakes await. g.mu is held.
func (g *generation) change() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// await waits until no client has a property, or until ctx is done.
func (g *generation) await(ctx context.Context, property func(*client) bool) {
	for {
		g.mu.Lock()
		found := false
		for _, c := range g.clients {
			found = found || property(c)
		}
		if g.changed == nil {
			g.changed = make(chan struct{})
		}
		changed := g.changed
		g.mu.Unlock()
		if !found {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// end shuts the generation down: it takes no more clients, closes idle HTTP connections, and waits
// for the others until ctx is done. Then it cuts them off, and returns their number.
func (g *generation) end(ctx context.Context) (cut int) {
	g.mu.Lock()
	g.ending = true
	g.mu.Unlock()
	if g.http != nil {
		g.takeLeave(ctx)
		g.closeIdle()
		// A server that shuts down answers no client that has not sent a request yet, or a part of one.
		starting, cancel := context.WithTimeout(ctx, time.Duration(g.plan.limits.Header))
		g.await(starting, func(c *client) bool { return !c.begun.Load() || c.http1 != nil && c.http1.exit.reads() })
		cancel()
		_ = g.http.Shutdown(ctx) // ctx's error
	}
	g.await(ctx, func(*client) bool { return true })
	cut = g.cut()
	g.release()
	return cut
}

// leavePatience is the time in which clients learn that their connections will be closed. A request
// that is on its way when an idle connection is closed would be lost: clients repeat no POST by
// themselves (RFC 9110, section 9.2.2).
const leavePatience = 2 * time.Second

// takeLeave tells clients that their connections will be closed: HTTP/1.1 clients with the next
// response, HTTP/2 clients at once. It waits for leavePatience, or until all have left, or until ctx
// is done; and again for connections that come back from the way to another process.
func (g *generation) takeLeave(ctx context.Context) {
	g.leaving.Store(true)
	g.mu.Lock()
	var told []*http2Conn
	for _, c := range g.clients {
		if c.http2 != nil && c.begun.Load() { // a client that is told before its first request would give up
			told = append(told, c.http2)
		}
	}
	g.mu.Unlock()
	for _, c := range told {
		go c.announceEnd() // which waits for a client that reads nothing
	}
	for again := true; again && ctx.Err() == nil; again = g.settle(ctx) {
		leaving, cancel := context.WithTimeout(ctx, leavePatience)
		g.await(leaving, func(*client) bool { return true })
		cancel()
	}
}

// cut closes the connections that are left at once, and returns their number.
func (g *generation) cut() int {
	g.mu.Lock()
	var left []*client
	for _, c := range g.clients {
		left = append(left, c)
	}
	g.mu.Unlock()
	for _, c := range left { // before net/http sends close_notify, which would complete an HTTP/1.0 body, or a 502
		reset(c.conn)
	}
	g.cancel()
	if g.http != nil {
		_ = g.http.Close()
	}
	// Their requests and relays fail now, and are logged.
	ending, stop := context.WithTimeout(context.Background(), cutPatience)
	g.await(ending, func(*client) bool { return true })
	stop()
	for _, c := range left {
		g.forget(c)
	}
	return len(left)
}

// cutPatience is the time in which the requests and relays of connections that were cut off must
// finish.
const cutPatience = time.Second

// release gives up everything but connections.
func (g *generation) release() {
	g.cancel()
	if g.give != nil {
		g.give.end()
	}
	for _, s := range g.sites {
		for _, end := range s.close {
			end()
		}
	}
}
