package terminator

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"
)

// errBusy ends requests for which no connection to the backend has become free.
var errBusy = errors.New("no connection became free in time: backend-conns are in use")

// errUpgrade ends requests whose backend changes to a protocol that the client has not asked for.
var errUpgrade = errors.New("the backend has changed the protocol, not to the one that the client asked for")

// A patient is a transport whose requests wait for a connection for some time only, and then for a
// backend that stalls: http.Transport itself lets them wait until the client leaves.
type patient struct {
	closeIdler
	timeout Time // for a connection
	limits  *Limits
}

func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	// The context ends with that of r, when the response has been passed on.
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(time.Duration(p.timeout), func() { cancel(errBusy) })
	var conn net.Conn
	var body *takenBody
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		conn = info.Conn
		if c, ok := underTLS(conn).(*backendConn); ok && info.Reused && c.settle(ctx, conn) {
			if body != nil {
				body.unsent.Store(true)
			}
			return // the wait for a connection that is open goes on
		}
		timer.Stop()
	}}
	r = r.WithContext(httptrace.WithClientTrace(ctx, trace))
	stall := newStall(cancel, p.limits.Idle, p.limits.Backend)
	if r.Body != nil && r.Body != http.NoBody {
		body = &takenBody{ReadCloser: r.Body, stall: stall}
		r.Body = body
	}
	resp, err := p.closeIdler.RoundTrip(r)
	for err != nil && ctx.Err() == nil && body.again() {
		resp, err = p.closeIdler.RoundTrip(r)
	}
	timer.Stop()
	stall.responded()
	if cause := context.Cause(ctx); err != nil && (errors.Is(cause, errBusy) || errors.Is(cause, errStalled)) {
		err = cause
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = &stallingBody{resp.Body, stall}
		return resp, nil
	}
	w := writerOf(ctx)
	if w == nil || !strings.EqualFold(r.Header.Get("Upgrade"), resp.Header.Get("Upgrade")) {
		_ = resp.Body.Close() // ReverseProxy would not
		return nil, errUpgrade
	}
	resp.Body = w.upgraded(conn, resp.Body)
	return resp, nil
}
