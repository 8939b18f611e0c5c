package audit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// A run is one audit in progress. Its probes run one after the other.
type run struct {
	target  Target
	options Options
	facts   *Facts
	address string // of the server under test: host:port
	// injected is sent with the request for TLS of StartTLS, see probeInjection.
	injected string

	// refusals finds out which lost connections are refusals.
	refusals refusals
	small    bool // the server answers no large hello: see largeHello

	sessions13 []*client.Session // TLS 1.3 sessions, received and not yet offered, the newest last

	mu   sync.Mutex
	cost Cost
	next time.Time // when the next connection may be made
	// The server answered a hello; the hellos whose connections were lost twice until then.
	answered bool
	lost     int
	slow     int // connections in a row that lasted until their deadline

	trip float64 // milliseconds of the shortest TCP handshake that a probe timed

	spare   *spare        // of the probe that runs
	nearest time.Duration // the shortest TCP handshake before a hello; 0 before the first
}

// A probe finds a part of the facts. It returns an error only if the context is done: everything
// else is a fact, or an Outcome.
type probe struct {
	name string
	run  func(context.Context, *run) error
}

// Errors of connections. They don't show whether the server offers something.
var (
	errBudget = errors.New("the audit has made as many connections as it may")
	errLost   = errors.New("the connection was lost")
	errSilent = fmt.Errorf("the server answered none of the first %d hellos", maxLost)
	errSlow   = fmt.Errorf("the server let %d connections in a row wait until the end of their time", maxSlow)
)

// maxSlow is the number of connections in a row, each as long as its deadline allows, after which a
// server that answered before isn't asked any more. Without it, a server could hold an audit for as
// many deadlines as the audit may make connections.
const maxSlow = 16

// finalError reports whether err is the audit's own, after which it makes no more connections.
func finalError(err error) bool {
	return errors.Is(err, errBudget) || errors.Is(err, errSilent) || errors.Is(err, errSlow)
}

// maxLost is the number of hellos after which a server that answered none isn't asked any more.
const maxLost = 3

// dial connects to an address of the target, and speaks the protocol as far as TLS begins. It
// counts the connection, and waits for its turn if the rate is bounded.
func (r *run) dial(ctx context.Context, address string) (net.Conn, error) {
	return r.dialAs(ctx, address, r.target.Protocol)
}

// dialAs is dial for a protocol.
func (r *run) dialAs(ctx context.Context, address, protocol string) (net.Conn, error) {
	if err := r.turn(ctx); err != nil {
		return nil, err
	}
	dial := r.options.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	conn, err := dial(limited, "tcp", address)
	if err != nil {
		return nil, err
	}
	counted := &countedConn{Conn: conn, run: r, connect: time.Since(start), greets: greets(protocol)}
	wait := r.options.Timeout
	if counted.greets {
		wait = max(wait, r.options.Greeting)
	}
	if err := counted.limit(wait); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	if err := r.startTLS(counted, protocol); err != nil {
		if counted.greets && errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
			err = fmt.Errorf("the server sent no greeting within %v: %w", wait, err)
		}
		return nil, errors.Join(err, counted.Close())
	}
	counted.inTLS = true
	return counted, nil
}

// turn waits until the rate allows another connection.
func (r *run) turn(ctx context.Context) error {
	r.mu.Lock()
	if r.lost >= maxLost && !r.answered {
		r.mu.Unlock()
		return errSilent
	}
	if r.slow >= maxSlow {
		r.mu.Unlock()
		return errSlow
	}
	if r.cost.Connections >= r.options.MaxConnections {
		r.mu.Unlock()
		return errBudget
	}
	r.cost.Connections++
	wait := time.Duration(0)
	if r.options.Rate > 0 {
		now := time.Now()
		if r.next.Before(now) {
			r.next = now
		}
		wait = r.next.Sub(now)
		r.next = r.next.Add(time.Duration(float64(time.Second) / r.options.Rate))
	}
	r.mu.Unlock()
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// exchange sends a ClientHello to the server under test on a connection of its own, and reads the
// reply. A connection that is lost without an alert is made once again, alone. The error wraps
// errLost if that was lost too: the question stays unanswered then.
func (r *run) exchange(ctx context.Context, h *hello.ClientHello, stop hello.Stop) (*hello.Reply, error) {
	packet, err := h.Marshal()
	if err != nil {
		return nil, err
	}
	return r.exchangeRaw(ctx, r.address, packet, stop)
}

// exchangeRaw is exchange with the bytes of a ClientHello, to any address.
func (r *run) exchangeRaw(ctx context.Context, address string, packet []byte, stop hello.Stop) (*hello.Reply, error) {
	for try := 0; ; try++ {
		reply, err := r.exchangeOnce(ctx, address, packet, stop)
		if err == nil || ctx.Err() != nil || finalError(err) ||
			errors.As(err, new(*hello.SyntaxError)) || errors.As(err, new(*startTLSError)) {
			r.mu.Lock()
			r.answered = r.answered || err == nil
			r.mu.Unlock()
			r.refusals.note(packet, reply, err, try)
			return reply, err
		}
		switch err := r.retry(ctx, address, err, try); {
		case err == errNoAlert:
			return &hello.Reply{Alert: &errNoAlert.Alert}, nil
		case errors.Is(err, errLost):
			r.mu.Lock()
			r.lost++
			r.mu.Unlock()
			return reply, err
		case err != nil:
			return nil, err
		}
	}
}

// lostPause is the time after which a lost connection is made again: a server that bounds its rate
// counts by the second.
const lostPause = 1100 * time.Millisecond

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *run) exchangeOnce(ctx context.Context, address string, packet []byte, stop hello.Stop) (*hello.Reply, error) {
	conn, err := r.dialAhead(ctx, address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	if _, err := conn.Write(packet); err != nil {
		return nil, err
	}
	reply, err := hello.Read(conn, stop)
	if reply != nil && signed(reply) {
		r.count(func(c *Cost) { c.Signatures++ })
	}
	if reply != nil && reply.Alert != nil {
		return reply, nil
	}
	return reply, err
}

// signed reports whether the server used its private key for the reply: in TLS 1.3 for every
// ServerHello that chooses no pre-shared key, before that for a signed ServerKeyExchange, which the
// server has sent even if nobody read it.
func signed(reply *hello.Reply) bool {
	h := reply.ServerHello
	if h == nil || h.Retry {
		return false
	}
	if h.Version >= hello.TLS13 {
		return h.PSK < 0
	}
	_, signs := hello.SuiteExchange(h.Suite)
	return signs
}

func (r *run) count(add func(*Cost)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.cost)
}

// A countedConn counts the bytes that pass.
type countedConn struct {
	net.Conn
	run     *run
	connect time.Duration // duration of the TCP handshake

	deadline time.Time
	closed   atomic.Bool
	greets   bool // the server has to speak first
	inTLS    bool // StartTLS, if there is one, lies behind
	answered bool // by a byte, since then
}

// limit gives the connection a new deadline.
func (c *countedConn) limit(d time.Duration) error {
	c.deadline = time.Now().Add(d)
	return c.SetDeadline(c.deadline)
}

// greeted is called when the server has sent its greeting.
func (c *countedConn) greeted() error {
	if !c.greets {
		return nil
	}
	c.greets = false
	return c.limit(c.run.options.Timeout)
}

// Close closes the connection, and notes whether it lasted until its deadline.
func (c *countedConn) Close() error {
	if !c.closed.Swap(true) {
		c.run.mu.Lock()
		if c.run.slow++; time.Now().Before(c.deadline) {
			c.run.slow = 0
		}
		c.run.mu.Unlock()
	}
	return c.Conn.Close()
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.run.count(func(cost *Cost) { cost.Bytes += n })
	if c.inTLS {
		if c.answered = c.answered || n > 0; !c.answered && closed(err) {
			err = &unansweredError{err}
		}
	}
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.run.count(func(cost *Cost) { cost.Bytes += n })
	return n, err
}
