package ossl

import (
	"crypto/tls"
	"fmt"
	"runtime"

	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/heldkey"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/netio"
	"github.com/ossl-go/ossl/internal/record"
)

// step takes a step with the input that has arrived. If there is no SSL, it makes one first.
func (h *handshake) step() (libssl.Step, error) {
	if !h.begun {
		if err := h.prepare(); err != nil { // without a place at a gate, since it calls back
			return libssl.Step{}, err
		}
	}
	place, share, err := h.enter()
	if err != nil {
		return libssl.Step{}, err
	}
	defer func() {
		if !h.holdsThread {
			place.Leave(share)
		}
	}()
	if h.window == nil {
		h.window = netio.Small.Get()
	}
	var step libssl.Step
	if h.begun {
		err = h.withSSL(func(ssl *libssl.Conn) {
			step = ssl.Handshake(h.in.Data, h.window.Mem, &h.facts)
			h.note(ssl, step)
		})
	} else {
		step, err = h.begin()
	}
	h.holdsThread = err == nil && place == pausedThreads && h.paused
	return step, err
}

// prepare finds the session or the pre-shared key to offer, and decides whether the SSL may ask questions.
func (h *handshake) prepare() error {
	c, ctx := h.c, h.c.context()
	h.asking = h.asks()
	if c.isClient {
		c.state.ServerName = hostnameInSNI(c.serverName)
		if err := h.offerPSK(); err != nil || h.psk.offer != nil {
			return err
		}
		h.session = h.loadSession()
		return nil
	}
	ctx.refreshTicketKeys()
	if !ctx.pausesAtHello && len(ctx.config.Certificates) > 0 {
		h.key = heldkey.In(ctx.config.Certificates[0].PrivateKey)
	}
	return nil
}

// asks reports whether a step may come to a question for which libssl doesn't pause. Only then
// steps run in a coroutine, which costs time and, on some systems, a thread.
func (h *handshake) asks() bool {
	ctx := h.c.context()
	if h.c.isClient {
		return !ctx.pausesToVerify || ctx.asksToSign || ctx.config.GetClientCertificate != nil
	}
	return ctx.config.ClientAuth != tls.NoClientCert || ctx.asksToSign || ctx.config.GetCertificate != nil ||
		ctx.opts.psk.find != nil && len(ctx.psk.suites12) > 0
}

// enter waits until the handshake may take a step. It returns the gate at which it has taken a
// place, and the share that the place counts for.
func (h *handshake) enter() (*gate.Gate, *gate.Share, error) {
	switch {
	case h.holdsThread:
		h.holdsThread = false // the step uses that place
		return pausedThreads, nil, nil
	case h.asking && !h.paused && paused.Load() >= maxPaused:
		if !h.c.isClient && !h.negotiated {
			h.sendAlert(alertInternalError)
		}
		return nil, nil, errTooManyPaused
	case h.key != nil && h.key.Share != nil && !(h.answered && h.version >= tls.VersionTLS13 && !h.c.isClient):
		// The step may sign with the token, and lasts as long as the token takes. A TLS 1.3 server
		// signs in its first flight, and not after it.
		if err := gate.Tokens.Enter(h.key.Share, h.wait); err != nil {
			return nil, nil, err
		}
		if err := h.ended(); err != nil { // don't sign for a peer that is gone
			gate.Tokens.Leave(h.key.Share)
			return nil, nil, err
		}
		return gate.Tokens, h.key.Share, nil
	case h.asking && libssl.PausesHoldThreads():
		return pausedThreads, nil, pausedThreads.Enter(nil, h.wait)
	}
	places := steps()
	return places, nil, places.Enter(nil, h.wait)
}

// begin makes the SSL and takes its first step, with one crossing. From then on release frees the
// SSL, or the garbage collector if the connection is dropped.
func (h *handshake) begin() (libssl.Step, error) {
	c, name := h.c, ""
	if c.isClient {
		name = c.state.ServerName
	}
	ssl, step, err := h.start(name)
	if err != nil {
		return libssl.Step{}, libraryError(err)
	}
	h.begun = true
	if c.watch.tracer != nil {
		c.watch.tracer.started(ssl)
	}
	h.note(ssl, step)
	c.engine.begin(ssl, runtime.AddCleanup(c, func(ssl *libssl.Conn) { ssl.Free(false, nil) }, ssl))
	c.unpin()
	return step, nil
}

func (h *handshake) start(name string) (*libssl.Conn, libssl.Step, error) {
	if h.psk.offer == nil {
		return h.c.context().ssl.Start(!h.c.isClient, h.asking, name, h.session, h.in.Data, h.window.Mem)
	}
	defer h.forgetPSKOffer()
	return h.c.context().ssl.StartPSK(h.asking, name, h.psk.offer, h.window.Mem)
}

// note takes the results of a step out of the SSL.
func (h *handshake) note(ssl *libssl.Conn, step libssl.Step) {
	h.consume(step.Consumed)
	h.stepResult = stepResult{sessions: h.sessions}
	h.version, h.negotiated = ssl.Version(), ssl.Negotiated()
	h.agreed, h.extendedMasterSecret, h.psk.agreed = ssl.Resumed(), ssl.ExtendedMasterSecret(), ssl.PSK()
	h.answered = h.answered || h.negotiated && step.Status == libssl.WantRead
	h.done = step.Status == libssl.Done
	h.notePaused(ssl.Paused())
	h.output = h.window.Mem[:step.Produced]
	if spill := ssl.Spill(); len(spill) > 0 {
		h.output = append(h.output[:step.Produced:step.Produced], spill...)
	}
	h.keyLog = string(ssl.KeyLog())
	if h.c.watch.tracer != nil {
		h.messages = ssl.Trace()
	}
	h.sessions = append(h.sessions, ssl.Sessions()...)
	if state := &h.c.state; !h.c.isClient && !h.done && state.ServerName == "" { // for a handshake that fails later
		state.ServerName = ssl.ServerName()
	}
	if h.offered != nil && !h.resumed && h.negotiated && h.agreed {
		h.resume()
	}
	if step.Status == libssl.Fatal {
		h.failure = h.failed(ssl)
	}
}

// notePaused records whether the last step has paused in its coroutine, and keeps the count of the
// handshakes that have.
func (h *handshake) notePaused(now bool) {
	switch {
	case now && !h.paused:
		paused.Add(1)
	case !now && h.paused:
		paused.Add(-1)
	}
	h.paused = now
}

// failed returns the error of a fatal step, and changes the alert in the output if crypto/tls sends
// another one.
func (h *handshake) failed(ssl *libssl.Conn) error {
	if h.refusing != nil {
		h.refused = h.refusing
	}
	if ssl.LeftOut() {
		h.alert = alertHandshakeFailure
		return errNoSignature
	}
	if n := ssl.LongHello(); n > 0 {
		h.alert = alertInternalError
		return record.LongMessageError(n)
	}
	alert, err := fatalError("handshake", ssl, h.tail[:h.tailLen], h)
	if h.refused != nil {
		h.alert = h.refused.alert
		if alert >= 0 && uint8(alert) != h.refused.alert {
			record.ReplaceAlert(h.output, h.refused.alert)
		}
		return h.refused.err
	}
	h.output, alert = blameless(h.output, alert, err)
	h.alert = uint8(max(alert, 0))
	if h.psk.fault != nil {
		err = fmt.Errorf("%w (%w)", h.psk.fault, err)
	}
	return err
}
