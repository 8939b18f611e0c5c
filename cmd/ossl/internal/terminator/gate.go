package terminator

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// A gate accepts connections, within the limits, and hands them to a server.
type gate struct {
	limits  atomic.Pointer[Limits]
	senders atomic.Pointer[senders] // of PROXY headers
	rate    *rate.Limiter
	slots   slots
	idlers  idlers
	sources *sources
	log     *slog.Logger
	refused complaints
	serve   func(*client) // takes over a connection; it must not block

	ctx     context.Context // done when the gate closes
	close   context.CancelFunc
	headers context.Context // done when PROXY headers are waited for no longer
	cut     context.CancelFunc
	sockets []socket
	loops   sync.WaitGroup
}

// A client is an accepted connection.
type client struct {
	conn    net.Conn
	address netip.AddrPort // of the PROXY header, if there is one; not valid for Unix sockets
	since   time.Time
	done    func()      // gives the connection's place to another one; only the first call counts
	begun   atomic.Bool // its first request has reached the handler
	work    clientWork
	place   string                 // where it has connected
	rest    atomic.Pointer[rest]   // while data is passed on, or nil
	stays   atomic.Pointer[string] // the reason why it has not moved to another process, or nil
	http1   *http1Conn             // if it speaks HTTP/1, from the end of the handshake on; set under the generation's mu
	http2   *http2Conn             // if it speaks HTTP/2; guarded by the generation's mu
}

// String returns the client's address for logs.
func (c *client) String() string {
	if c.address.IsValid() {
		return c.address.String()
	}
	return "unix"
}

func newGate(sockets []socket, log *slog.Logger) *gate {
	g := &gate{sockets: sockets, log: log, sources: newSources(), rate: rate.NewLimiter(rate.Inf, 1)}
	g.slots.freed = make(chan struct{}, 1)
	g.idlers.clients = map[*client]struct{}{}
	g.ctx, g.close = context.WithCancel(context.Background())
	g.headers, g.cut = context.WithCancel(context.Background())
	return g
}

// set puts limits into effect for new connections.
func (g *gate) set(l Limits, s senders) {
	g.limits.Store(&l)
	g.senders.Store(&s)
	g.slots.resize(l.Connections)
	if l.Rate > 0 {
		g.rate.SetLimit(rate.Limit(l.Rate))
		g.rate.SetBurst(burst(l.Rate))
	} else {
		g.rate.SetLimit(rate.Inf)
	}
}

// start begins to accept.
func (g *gate) start() {
	for _, s := range g.sockets {
		g.loops.Go(func() { g.accept(s) })
	}
}

// stop closes the listeners, hands on the clients that were accepted, and closes those whose PROXY
// header is still missing when ctx is done.
func (g *gate) stop(ctx context.Context) {
	g.close()
	for _, s := range g.sockets {
		_ = s.listener.Close()
	}
	undo := context.AfterFunc(ctx, g.cut)
	g.loops.Wait()
	undo()
	g.cut()
}

// accept accepts the connections of a listener. While the server is full, or the rate is exceeded,
// one client waits here, and the others wait in the kernel's queue. If the server is full, the clients
// that have been idle longest give up their places. Those with a PROXY header have places already when
// they wait for the rate.
func (g *gate) accept(s socket) {
	pause := time.Duration(0)
	for {
		conn, err := s.listener.Accept()
		if err == nil {
			pause = 0
			full := func(first bool) {
				if first {
					g.refused.report(g.log, "connections", conn.RemoteAddr().String())
				}
				for _, c := range g.idlers.longest(time.Now()) {
					g.refused.report(g.log, "idle", c.String())
					c.leave()
				}
			}
			if !g.slots.take(g.ctx, full) {
				// The gate closes, and this is the last client of the listener: it isn't dropped, but served
				// above the limit.
				g.slots.force()
			}
			g.admit(conn, s.place)
			continue
		}
		if g.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}
		// Such as too many open files: some will be closed.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		g.log.Error("accept", "error", err, "pause", pause)
		select {
		case <-time.After(pause):
		case <-g.ctx.Done():
			return
		}
	}
}

// admit hands a connection on, after its PROXY header if it has to have one.
func (g *gate) admit(conn net.Conn, place string) {
	c := &client{conn: conn, since: time.Now(), address: addrPortOf(conn.RemoteAddr()), place: place}
	s := g.senders.Load()
	if s.expected() && !s.has(conn.RemoteAddr()) {
		g.refuse(c, "accept-proxy")
		g.slots.release()
		return
	}
	c.work.idleSince.Store(c.since.UnixNano())
	g.idlers.add(c)
	c.done = sync.OnceFunc(func() {
		g.idlers.remove(c)
		g.slots.release()
	})
	if !s.expected() {
		g.bound(c)
		return
	}
	g.loops.Go(func() {
		stop := context.AfterFunc(g.headers, func() { _ = conn.Close() })
		address, err := readProxyHeader(conn, c.address, g.limits.Load().Header)
		if stop(); err != nil {
			g.log.Warn("PROXY header", "peer", c.String(), "error", err)
			_ = conn.Close()
			c.done()
			return
		}
		c.address = address
		g.bound(c)
	})
}

// bound applies the limits of the client's address, then the rate of all clients, and hands the
// connection on. Otherwise one address could exhaust the rate with connections that are
// refused anyway.
func (g *gate) bound(c *client) {
	if c.address.IsValid() {
		source := sourceOf(c.address.Addr())
		if limit := g.sources.take(source, g.limits.Load()); limit != "" {
			g.refuse(c, limit)
			c.done()
			return
		}
		place := c.done
		c.done = sync.OnceFunc(func() {
			g.sources.release(source)
			place()
		})
	}
	_ = g.rate.Wait(g.ctx) // a gate that closes hands on at once: the clients here have their places
	g.serve(c)
}

// adopt counts a client that a former process has accepted. It is counted above the limits too.
func (g *gate) adopt(c *client) {
	g.slots.force()
	c.work.idleSince.Store(time.Now().UnixNano())
	g.idlers.add(c)
	source := sourceOf(c.address.Addr())
	if c.address.IsValid() {
		g.sources.force(source)
	}
	c.done = sync.OnceFunc(func() {
		if c.address.IsValid() {
			g.sources.release(source)
		}
		g.idlers.remove(c)
		g.slots.release()
	})
}

// refuse closes a connection because of a limit.
func (g *gate) refuse(c *client, limit string) {
	g.refused.report(g.log, limit, c.String())
	reset(c.conn)
}

// reset closes a connection at once, a TCP connection with an RST: nothing is left to the kernel.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// slots bound the connections that are open at a time.
type slots struct {
	mu        sync.Mutex
	used, max int
	freed     chan struct{} // has an element if there may be a free slot that somebody waits for
}

// take takes a slot, and reports whether it has one: the context may be done first. full is called
// when it must wait, and then from time to time.
func (s *slots) take(ctx context.Context, full func(first bool)) bool {
	for first := true; ; first = false {
		if s.try() {
			return true
		}
		full(first)
		select {
		case <-s.freed:
		case <-time.After(idleAtLeast / 4):
		case <-ctx.Done():
			return false
		}
	}
}

func (s *slots) try() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.max {
		return false
	}
	s.used++
	s.wake()
	return true
}

// force takes a slot, even if there is none.
func (s *slots) force() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
}

func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.wake()
}

// inUse returns the number of slots that are taken.
func (s *slots) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *slots) resize(max int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.max = max
	s.wake()
}

// wake wakes one that waits, which wakes the next one. s.mu is held.
func (s *slots) wake() {
	if s.used < s.max {
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
}

// complaints log that a limit is exceeded: once a second at most for each, with the number of times.
type complaints struct {
	mu   sync.Mutex
	last map[string]time.Time
	left map[string]int
	all  map[string]uint64
}

func (c *complaints) report(log *slog.Logger, limit, client string) {
	if times := c.due(limit); times > 0 {
		log.Warn("limit", "limit", limit, "client", client, "times", times)
	}
}

// due counts a complaint, and returns the number of those to report now, or 0.
func (c *complaints) due(limit string) (times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last, c.left, c.all = map[string]time.Time{}, map[string]int{}, map[string]uint64{}
	}
	c.left[limit]++
	c.all[limit]++
	now := time.Now()
	if now.Sub(c.last[limit]) < time.Second {
		return 0
	}
	c.last[limit] = now
	times, c.left[limit] = c.left[limit], 0
	return times
}

// times returns how often a limit was exceeded.
func (c *complaints) times(limit string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[limit]
}
