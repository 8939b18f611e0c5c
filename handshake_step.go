package ossl

import (
	"crypto/tls"
	"runtime"

	"github.com/ossl-go/ossl/internal/libssl"
)

// takeBuffer takes the window for a step's output. None is held while the peer is waited for.
func (h *handshake) takeBuffer() {
	if h.out == nil {
		h.out = getBuffer(smallBuffers)
	}
}

// asks reports whether a step of this handshake may have to ask Go where libssl itself can't pause.
func (h *handshake) asks() bool {
	c := h.c
	config := c.context().config
	if c.isClient {
		return !c.context().pauses || c.context().asksToSign || config.GetClientCertificate != nil
	}
	return config.ClientAuth != tls.NoClientCert || c.context().asksToSign || config.GetCertificate != nil
}

// enter waits until this handshake may take a step. It returns the gate and the share of the place that it took.
func (h *handshake) enter() (*gate, *share, error) {
	switch {
	case h.holdsThread:
		h.holdsThread = false // the step uses that place
		return pausedThreads, nil, nil
	case h.asking && !h.paused && paused.Load() >= maxPaused:
		if !h.c.isClient && !h.negotiated {
			_ = h.send(plaintextAlert(alertInternalError))
		}
		return nil, nil, errTooManyPaused
	case h.key != nil && h.key.turns != nil && !(h.answered && h.version >= tls.VersionTLS13 && !h.c.isClient):
		// The step may sign with the token, and last as long as the token takes. A TLS 1.3 server signs in its first flight.
		if err := blocked.enter(h.key.turns, h.wait); err != nil {
			return nil, nil, err
		}
		if err := h.ended(); err != nil { // don't sign for a peer that is gone
			blocked.leave(h.key.turns)
			return nil, nil, err
		}
		return blocked, h.key.turns, nil
	case h.asking && libssl.PausesHoldThreads():
		return pausedThreads, nil, pausedThreads.enter(nil, h.wait)
	}
	return steps(), nil, steps().enter(nil, h.wait)
}

// begin makes the SSL and takes the first step.
func (h *handshake) begin() (libssl.Step, error) {
	c := h.c
	name := ""
	var session []byte
	if c.isClient {
		name = hostnameInSNI(c.serverName)
		c.state.ServerName = name
		session = h.loadSession()
	} else {
		c.context().refreshTicketKeys()
		if !c.context().hellos {
			h.key, _ = c.context().config.Certificates[0].PrivateKey.(*Key)
		}
	}
	if h.asking = h.asks(); h.asking {
		t, err := c.context().ssl.NewAskingConn(!c.isClient, name, session)
		if err != nil {
			return libssl.Step{}, libraryError(err)
		}
		h.adopt(t)
		return h.step()
	}
	gate, share, err := h.enter()
	if err != nil {
		return libssl.Step{}, err
	}
	defer gate.leave(share)
	h.takeBuffer()
	in := c.in.data
	t, step, err := c.context().ssl.Start(!c.isClient, name, session, in, h.out.mem)
	if err != nil {
		return libssl.Step{}, libraryError(err)
	}
	h.note(t, step)
	h.adopt(t)
	return step, nil
}

// adopt makes t the connection's SSL, freed by release or, if the connection is dropped, with it.
func (h *handshake) adopt(t *libssl.Conn) {
	c := h.c
	c.engine.begin(t, runtime.AddCleanup(c, func(t *libssl.Conn) { t.Free(false, nil) }, t))
}

// step takes a step with the input there is.
func (h *handshake) step() (libssl.Step, error) {
	c := h.c
	gate, share, err := h.enter()
	if err != nil {
		return libssl.Step{}, err
	}
	defer func() {
		if !h.holdsThread {
			gate.leave(share)
		}
	}()
	h.takeBuffer()
	ssl, err := c.engine.lock()
	if err != nil {
		return libssl.Step{}, err
	}
	defer c.engine.unlock()
	step := ssl.Handshake(c.in.data, h.out.mem, &h.facts)
	h.note(ssl, step)
	h.notePaused(ssl.Paused())
	h.holdsThread = gate == pausedThreads && h.paused
	return step, nil
}

// note records the connection's state after a step.
func (h *handshake) note(t *libssl.Conn, step libssl.Step) {
	h.consume(step.Consumed)
	h.version, h.negotiated = t.Version(), t.Negotiated()
	h.agreed, h.extendedMasterSecret = t.Resumed(), t.ExtendedMasterSecret()
	h.answered = h.answered || h.negotiated && step.Status == libssl.WantRead
}

// notePaused counts the handshake among those that wait for Go, or no longer.
func (h *handshake) notePaused(now bool) {
	switch {
	case now && !h.paused:
		paused.Add(1)
	case !now && h.paused:
		paused.Add(-1)
	}
	h.paused = now
}

// failed returns the output to send and the error to return after a fatal step. The engine is
// locked.
func (h *handshake) failed(ssl *libssl.Conn, out []byte) ([]byte, error) {
	if h.refusing != nil {
		h.refused = h.refusing
	}
	if ssl.LeftOut() {
		return out, errNoSignature
	}
	if n := ssl.LongHello(); n > 0 {
		return out, errLongMessage(n)
	}
	alert, err := fatalError("handshake", ssl, h.tail[:h.tailLen])
	if h.refused != nil {
		if alert >= 0 && uint8(alert) != h.refused.alert {
			rewriteAlert(out, h.refused.alert)
		}
		return out, h.refused.err
	}
	return out, err
}
