package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// refusals is the memory that distinguishes lost connections from refusals. Load balancers and
// SChannel close or reset a connection instead of sending an alert, and so do servers and firewalls
// that bound the rate of connections. A hello whose connection is lost twice, before the first byte
// of an answer and with a pause between, was refused if the server answers another one then, and
// not the same.
type refusals struct {
	good   []byte // a ClientHello that the server answered; one that it needn't sign for, if there is one
	cheap  bool   // it needn't sign for good
	silent bool   // a refusal without an alert was seen
	flaky  bool   // a connection was lost for other reasons
}

// note takes an answer.
func (f *refusals) note(packet []byte, reply *hello.Reply, err error, try int) {
	if err != nil || reply == nil {
		return
	}
	f.flaky = f.flaky || try > 0
	if reply.ServerHello == nil {
		return
	}
	if cheap := !signed(reply); f.good == nil || cheap && !f.cheap {
		f.good, f.cheap = packet, cheap
	}
}

// retry is called when a connection was lost at its first, second or third try. It returns nil if
// the connection is to be made again, after a pause if it was the first. The error is errNoAlert if the
// server has refused the connection, and else wraps errLost.
func (r *run) retry(ctx context.Context, address string, err error, try int) error {
	r.dropSpare()
	refused, ask := r.refused(ctx, address, err, try)
	switch {
	case refused:
		r.facts.Protocols.Silent++
		return errNoAlert
	case try > 0 && !ask:
		return fmt.Errorf("%w twice: %w", errLost, err)
	}
	r.count(func(c *Cost) { c.Retried++ })
	if ask {
		return ctx.Err()
	}
	return sleep(ctx, lostPause)
}

// refused reports whether a lost connection is a refusal, and whether a third try will show it. To
// see whether the server answers others, it makes a connection. Once the server is known to refuse
// so, and if it has lost no connection for other reasons, the first try is enough.
func (r *run) refused(ctx context.Context, address string, err error, try int) (refused, ask bool) {
	f := &r.refusals
	switch {
	case !errors.As(err, new(*unansweredError)), f.good == nil, try == 0 && (f.flaky || !f.silent):
		return false, false
	case try == 2:
		f.silent = true
		return true, false
	}
	if _, err := r.exchangeOnce(ctx, address, f.good, hello.AtServerHello); err != nil {
		f.flaky = true
		return false, false
	}
	return f.silent, !f.silent
}

// errNoAlert is the error of a handshake that was refused without an alert.
var errNoAlert = &client.AlertError{Alert: hello.Alert{Silent: true}}

// An unansweredError reports that the server closed or reset the connection before it answered in TLS.
type unansweredError struct{ err error }

func (e *unansweredError) Error() string { return e.err.Error() }
func (e *unansweredError) Unwrap() error { return e.err }
