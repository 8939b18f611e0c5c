package terminator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// pause is the time for which a backend that fails gets nothing, if others are well. Then one
// request or connection tries it.
const pause = 10 * time.Second

// A health is the state of a backend, which outlives reloads.
type health struct {
	clean atomic.Bool // nothing of the following has failed

	mu       sync.Mutex
	underWay int       // guarded by mu; requests or connections, at a site with several
	late     int       // guarded by mu; times in a row that an answer didn't come in time
	paused   time.Time // guarded by mu; the end of the pause, or zero if the backend is well
	misses   int       // guarded by mu; checks in a row that failed
	unfit    bool      // guarded by mu; by checks
	known    bool      // guarded by mu; there was a check

	answers, failures, retries atomic.Uint64
}

func newHealth() *health {
	h := new(health)
	h.clean.Store(true)
	return h
}

// The states of backends, the best first.
const (
	well   = iota
	paused // something has failed a moment ago
	unfit  // checks fail
)

// A rank describes how good a backend is.
type rank struct {
	state      int
	load, turn uint64
}

func (r rank) before(s rank) bool {
	return cmp.Or(cmp.Compare(r.state, s.state), cmp.Compare(r.load, s.load), cmp.Compare(r.turn, s.turn)) < 0
}

// rank returns the rank at a time. A backend whose pause is over is well, for one request.
func (h *health) rank(now time.Time) rank {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.unfit:
		return rank{state: unfit, load: uint64(h.underWay)}
	case now.Before(h.paused):
		return rank{state: paused, load: uint64(h.paused.UnixNano())}
	}
	return rank{state: well, load: uint64(h.underWay)}
}

// enter counts a request or connection.
func (h *health) enter(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.underWay++
	if !h.paused.IsZero() && !now.Before(h.paused) {
		h.paused = now.Add(pause) // while this one tries the backend
	}
}

// join counts a connection that a former process has made.
func (h *health) join() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.underWay++
}

// leave is called when the request that entered is over.
func (h *health) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.underWay--
}

// up reports whether the backend is well, as far as is known.
func (h *health) up() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.unfit && h.paused.IsZero()
}

// A change of a backend's state.
type change int

const (
	same change = iota
	worse
	better
)

// changeTo changes the state, and returns whether up has changed.
func (h *health) changeTo(f func()) change {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := !h.unfit && h.paused.IsZero()
	f()
	after := !h.unfit && h.paused.IsZero()
	h.clean.Store(after && h.late == 0)
	switch {
	case before && !after:
		return worse
	case !before && after:
		return better
	}
	return same
}

// answered notes that the backend has answered.
func (h *health) answered() change {
	h.answers.Add(1)
	if h.clean.Load() {
		return same
	}
	return h.changeTo(func() { h.late, h.paused = 0, time.Time{} })
}

// failed notes that there was no connection to the backend.
func (h *health) failed(now time.Time) change {
	return h.changeTo(func() { h.paused = now.Add(pause) })
}

// maxLate is the number of times in a row that an answer must not come in time. One can be due to
// the request: a client must not be able to pause a backend by a request that takes long.
const maxLate = 3

// timedOut notes that an answer did not come in time.
func (h *health) timedOut(now time.Time) change {
	return h.changeTo(func() {
		if h.late++; h.late >= maxLate {
			h.paused = now.Add(pause)
		}
	})
}

// maxMisses is the number of checks in a row that must fail, unless it is the first one.
const maxMisses = 2

// checked notes the result of a check.
func (h *health) checked(err error) change {
	return h.changeTo(func() {
		if err == nil {
			h.misses, h.late, h.unfit, h.paused = 0, 0, false, time.Time{}
		} else if h.misses++; h.misses >= maxMisses || !h.known {
			h.unfit = true
		}
		h.known = true
	})
}

// uncheck forgets the results of checks.
func (h *health) uncheck() {
	h.changeTo(func() { h.misses, h.unfit, h.known = 0, false, false })
}

// judge notes the result of a request. What the client or a limit has caused doesn't count.
func (m *member) judge(ctx context.Context, a *attempt, err error) change {
	if err == nil {
		return m.answered()
	}
	m.failures.Add(1)
	switch {
	case ctx.Err() != nil, errors.Is(err, errBusy), errors.Is(err, errUpgrade), a.body.failed():
		return same
	case a.lost():
		return m.failed(time.Now())
	case isTimeout(err), errors.Is(err, errStalled):
		return m.timedOut(time.Now())
	}
	return same
}

// tell logs a change.
func (m *member) tell(log *slog.Logger, c change, err error) {
	switch c {
	case worse:
		log.Warn("backend fails", "backend", m.address, "error", err)
	case better:
		log.Info("backend is well again", "backend", m.address)
	}
}

// watch checks the backends of a site until ctx is done, if the site has a check.
func (p *backends) watch(ctx context.Context) {
	if p.plan.Check == "" {
		return
	}
	for _, m := range p.members {
		check, err := m.checker()
		if err != nil {
			p.log.Error("backend can't be checked", "backend", m.address, "error", err)
			continue
		}
		interval := time.Duration(cmp.Or(p.plan.CheckInterval, DefaultCheckInterval))
		go func() {
			ticker := time.NewTicker(interval)
			defer ticker.Stop()
			for {
				bounded, cancel := context.WithTimeout(ctx, interval)
				err := check(bounded)
				cancel()
				if ctx.Err() != nil {
					return
				}
				m.tell(p.log, m.checked(err), err)
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
}

// checker returns a function that checks the backend: by a request for a path, or by a connection.
// It has connections of its own, since requests may hold all others.
func (m *member) checker() (func(context.Context) error, error) {
	if !m.http {
		return func(ctx context.Context) error {
			conn, err := m.connect(ctx, netip.AddrPort{}, nil)
			if err == nil {
				_ = conn.Close()
			}
			return err
		}, nil
	}
	transport, err := m.transport(1)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.to.String()+m.plan.Check, nil)
		if err != nil {
			return err
		}
		r.Header.Set("User-Agent", "ossl-check")
		if m.network == "unix" {
			r.Host = "localhost"
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("the check %s is answered with the status %d", m.plan.Check, resp.StatusCode)
		}
		return nil
	}, nil
}
