package terminator

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// A backends has the backends of a site, one or several that do the same. It chooses a backend for
// each request or TCP connection, and another one if that fails and the request can be repeated.
type backends struct {
	members   []*member
	plan      *backendPlan
	byAddress bool
	patience  time.Duration // after which no further backend is tried
	now       func() time.Time
	shares    *shares // for HTTP backends
	log       *slog.Logger

	mu   sync.Mutex
	turn uint64 // guarded by mu; the number of choices
}

// A member is a backend of a site.
type member struct {
	*backend
	name     string   // as it is configured
	to       *url.URL // of requests, without a path
	requests patient  // for HTTP backends
	turn     uint64   // guarded by backends.mu; its last one
	*health
}

// maxTries bounds the backends that are tried for a request or a connection.
const maxTries = 3

// newBackends prepares the backends of a site.
func newBackends(plan *backendPlan, lists crlStore, log *slog.Logger) (*backends, error) {
	p := &backends{plan: plan, byAddress: plan.Balance == "address", now: time.Now, log: log}
	// Longer than dialing and the handshake may take, because their errors contain more.
	patience := 2*plan.limits.Backend + Time(time.Second)
	p.patience = time.Duration(patience)
	p.shares = newShares(plan.limits, patience)
	for _, to := range plan.targets {
		made, err := newBackend(plan, to, lists)
		if err != nil {
			return nil, err
		}
		m := &member{backend: made, name: to.text, health: newHealth()}
		if made.http {
			transport, err := made.transport(plan.limits.BackendConns)
			if err != nil {
				return nil, err
			}
			m.requests = patient{transport, patience, plan.limits, len(plan.targets) > 1}
		}
		m.to = &url.URL{Scheme: "http", Host: "backend"} // of a Unix socket
		if made.target.tls {
			m.to.Scheme = "https"
		}
		if made.network != "unix" {
			m.to.Host = made.address
		}
		p.members = append(p.members, m)
	}
	return p, nil
}

// closeIdle closes the idle connections to the HTTP backends.
func (p *backends) closeIdle() {
	for _, m := range p.members {
		if m.requests.closeIdler != nil {
			m.requests.CloseIdleConnections()
		}
	}
}

// adopt takes the state of those backends that a former configuration of the site had too.
func (p *backends) adopt(former *backends) {
	for _, m := range p.members {
		for _, f := range former.members {
			if f.name == m.name {
				m.health = f.health
			}
		}
		if p.plan.Check != former.plan.Check {
			m.uncheck()
		}
	}
}

// pick chooses a backend that has not been tried, and counts the request or connection as under way
// there until leave is called. It returns nil if there is none. If no backend is well, it chooses
// the least bad one.
func (p *backends) pick(c *client, tried []*member) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	var best *member
	var least rank
	for _, m := range p.members {
		if slices.Contains(tried, m) {
			continue
		}
		r := m.rank(now)
		r.turn = m.turn
		if p.byAddress && c != nil && c.address.IsValid() && r.state == well {
			r.load = ^score(sourceOf(c.address.Addr()).String(), m.name)
		}
		if best == nil || r.before(least) {
			best, least = m, r
		}
	}
	if best == nil {
		return nil
	}
	best.enter(now)
	if len(tried) == 0 {
		p.turn++
		best.turn = p.turn
	}
	return best
}

// score returns a number for a client at a backend, which is the same in all processes. The backend
// with the highest one serves the client, so that a backend that is gone moves no other backend's
// clients.
func score(source, backend string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, source)
	_, _ = io.WriteString(h, " "+backend)
	n := h.Sum64() // of which similar texts have similar numbers
	n = (n ^ n>>33) * 0xff51afd7ed558ccd
	n = (n ^ n>>33) * 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// A memberError is the error of a backend.
type memberError struct {
	member *member
	err    error
}

func (e *memberError) Error() string { return e.err.Error() }
func (e *memberError) Unwrap() error { return e.err }

// logAttributes returns the attributes of an error of backends.
func logAttributes(err error) []any {
	attributes := []any{"error", err}
	var failed *memberError
	if errors.As(err, &failed) {
		attributes = append([]any{"backend", failed.member.address}, attributes...)
	}
	return attributes
}

// RoundTrip sends a request to a backend.
func (p *backends) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(p.members) == 1 {
		m := p.members[0]
		resp, a, err := m.requests.try(r)
		m.judge(r.Context(), a, err)
		if err != nil {
			return nil, &memberError{m, err}
		}
		m.upgraded(resp)
		return resp, nil
	}
	c, _ := r.Context().Value(clientKey{}).(*client)
	begun := p.now()
	resent := false
	var tried []*member
	for {
		m := p.pick(c, tried)
		out := new(http.Request)
		*out = *r
		to := *r.URL
		to.Host = m.to.Host
		out.URL = &to
		resp, a, err := m.requests.try(out)
		m.tell(p.log, m.judge(r.Context(), a, err), err)
		if err == nil {
			if body, ok := resp.Body.(*stallingBody); ok {
				body.ended = sync.OnceFunc(m.leave)
			} else { // an upgrade, which is over when the request is
				context.AfterFunc(r.Context(), m.leave)
			}
			m.upgraded(resp)
			return resp, nil
		}
		m.leave()
		tried = append(tried, m)
		again := r.Context().Err() == nil && (a.unsent() || !resent && a.repeatable(r, err))
		resent = resent || !a.unsent()
		if !again || p.spent(tried, begun) {
			return nil, &memberError{m, err}
		}
		m.retries.Add(1)
		p.log.Warn("backend: another one is tried", "backend", m.address, "error", err)
	}
}

// upgraded notes that a backend has agreed to an upgrade, if the response is of that kind.
func (m *member) upgraded(resp *http.Response) {
	if c, ok := resp.Body.(*upgradedConn); ok {
		c.upgrade.member = m
	}
}

// spent reports whether no further backend may be tried.
func (p *backends) spent(tried []*member, begun time.Time) bool {
	return len(tried) == min(maxTries, len(p.members)) || p.now().Sub(begun) >= p.patience
}

// connect connects a TCP client to a backend. The caller must call its leave when the connection is
// closed.
func (p *backends) connect(ctx context.Context, c *client) (net.Conn, *member, error) {
	begun := p.now()
	var tried []*member
	for {
		m := p.pick(c, tried)
		conn, err := m.connect(ctx, c.address, c.conn.LocalAddr())
		if err == nil {
			change := m.answered()
			if len(p.members) > 1 {
				m.tell(p.log, change, nil)
			}
			return conn, m, nil
		}
		m.leave()
		tried = append(tried, m)
		m.failures.Add(1)
		if ctx.Err() == nil {
			change := m.failed(p.now())
			if len(p.members) > 1 {
				m.tell(p.log, change, err)
			}
		}
		if ctx.Err() != nil || p.spent(tried, begun) {
			return nil, nil, &memberError{m, err}
		}
		m.retries.Add(1)
		p.log.Warn("backend: another one is tried", "backend", m.address, "error", err)
	}
}
