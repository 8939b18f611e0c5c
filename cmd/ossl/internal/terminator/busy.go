package terminator

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// errBusy is the error of requests for which no connection to the backend became free.
var errBusy = errors.New("no connection became free in time: backend-conns are in use")

// errUpgrade is the error of requests whose backend changes to a protocol that the client has not
// asked for.
var errUpgrade = errors.New("the backend has changed the protocol, not to the one that the client asked for")

// errMalformed is the error of requests whose response isn't well-formed.
var errMalformed = errors.New("the backend's response has an invalid status or an invalid name of a field")

// A patient is a transport whose requests wait for a connection for some time only, and then for a
// backend that stalls: http.Transport itself lets them wait until the client leaves.
type patient struct {
	closeIdler
	timeout Time // for a connection
	limits  *Limits
	hold    bool // bodies stay open until they are read: another backend may be tried
}

// An attempt is a request on its way to a backend.
type attempt struct {
	ctx   context.Context
	timer *time.Timer // for a connection
	conn  net.Conn
	body  *takenBody // nil without a body

	connected atomic.Bool // the request may have been sent, the last time that it was tried
	met       atomic.Bool // the same for all times
	responded atomic.Bool // a response has begun
}

// gotConn is called with a connection for the request.
func (a *attempt) gotConn(info httptrace.GotConnInfo) {
	a.conn = info.Conn
	if c, ok := underTLS(a.conn).(*backendConn); ok && info.Reused && c.settle(a.ctx, a.conn) {
		if a.body != nil {
			a.body.unsent.Store(true)
		}
		return // the wait for a connection that is open goes on
	}
	a.connected.Store(true)
	a.met.Store(true)
	a.timer.Stop()
}

// lost reports whether there was no connection for the request at last.
func (a *attempt) lost() bool { return !a.connected.Load() }

// unsent reports whether nothing of a request that has failed has been sent, nor read of its body.
func (a *attempt) unsent() bool { return !a.met.Load() && (a.body == nil || !a.body.read.Load()) }

// repeatable reports whether a request that may have been sent, and has failed with an error, can be sent
// again: RFC 9110, section 9.2.2. If the backend was too slow, another one would be too late.
func (a *attempt) repeatable(r *http.Request, err error) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
	default:
		return false
	}
	if a.body != nil || errors.Is(err, errBusy) {
		return false
	}
	return a.lost() || !a.responded.Load() && !isTimeout(err) && !errors.Is(err, errStalled) && !errors.Is(err, errUpgrade)
}

// try sends a request, and returns the response, and how it went.
func (p patient) try(r *http.Request) (*http.Response, *attempt, error) {
	// The context is canceled with r's context, when the response has been passed on.
	ctx, cancel := context.WithCancelCause(r.Context())
	a := &attempt{ctx: ctx, timer: time.AfterFunc(time.Duration(p.timeout), func() { cancel(errBusy) })}
	r = r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { a.connected.Store(false) }, // http.Transport itself tries again if it may
		GotConn:              a.gotConn,
		GotFirstResponseByte: func() { a.responded.Store(true) },
	}))
	stall := newStall(cancel, p.limits.Idle, p.limits.Backend)
	if r.Body != nil && r.Body != http.NoBody {
		a.body = &takenBody{ReadCloser: r.Body, stall: stall, hold: p.hold}
		r.Body = a.body
	}
	resp, err := p.closeIdler.RoundTrip(r)
	for err != nil && ctx.Err() == nil && a.body.again() {
		resp, err = p.closeIdler.RoundTrip(r)
	}
	a.timer.Stop()
	stall.responded()
	if cause := context.Cause(ctx); err != nil && (errors.Is(cause, errBusy) || errors.Is(cause, errStalled)) {
		err = cause
	}
	if err != nil {
		return nil, a, err
	}
	if !wellFormedResponse(resp) {
		_ = resp.Body.Close()
		return nil, a, errMalformed
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = &stallingBody{ReadCloser: resp.Body, stall: stall}
		return resp, a, nil
	}
	w := writerOf(ctx)
	if w == nil || !strings.EqualFold(r.Header.Get("Upgrade"), resp.Header.Get("Upgrade")) {
		_ = resp.Body.Close() // ReverseProxy would not
		return nil, a, errUpgrade
	}
	resp.Body = w.upgraded(a.conn, resp.Body)
	return resp, a, nil
}
