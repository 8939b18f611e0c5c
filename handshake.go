package ossl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// A handshake is the state of one that is under way.
type handshake struct {
	c   *Conn
	ctx context.Context
	out *buffer // the output window, nil while the peer is waited for
	// Copied after each step, for code that doesn't hold mu.
	version              uint16 // as far as it is known
	negotiated           bool   // a ServerHello, not a HelloRetryRequest, was sent or received
	agreed               bool   // both ends have agreed to resume a session
	extendedMasterSecret bool
	asking               bool // a step may stop in its middle with a question
	paused               bool // the last step has stopped so
	answered             bool // a server has made its first flight, with its signature
	holdsThread          bool // between two steps, it keeps its place at the gate pausedThreads
	scan                 recordScanner
	tail                 [recordHeaderLen]byte // the last bytes that libssl took
	tailLen              int
	started              bool // the first record's header was checked

	refused            *refusal // the decision that ended it
	refusing           *refusal // the decision that will end it, when the server's flight is complete
	connectionVerified bool     // VerifyConnection was asked
	chainDecided       bool     // on the peer's chain, or on there being none
	helloDone          bool     // the ClientHello was decided on
	credential         *libssl.Credential
	key                *Key           // of the certificate chosen, if it is one
	local              [][]byte       // the chain that was chosen to be shown to the peer
	offered            *storedSession // what a resumed connection takes of the session: a client's offer, a server's candidate
	resumed            bool           // it was taken
	sessions           []libssl.Session
	sessionVersion     uint16 // of sessions
	lookedUp           []byte // the ID of what the cache gave, if it is to stay there
	done               bool
	facts              libssl.Facts // once it is done
}

// runHandshake runs the handshake to its end. handshakeMu and readMu are held.
func (c *Conn) runHandshake(ctx context.Context) error {
	if c.configErr != nil {
		return c.configErr
	}
	if c.isClient && c.serverName == "" && !c.context().config.InsecureSkipVerify {
		return errNoServerName
	}
	if c.isClient {
		if err := checkServerName(c.serverName); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx) // what callbacks see ends with the handshake, as in crypto/tls
	defer cancel()
	h := &handshake{c: c, ctx: ctx}
	c.hs = h
	// What stands if a callback panics: nothing is tried again.
	c.handshakeErr = errPanicked
	defer func() {
		if h.out != nil {
			h.out.put()
		}
		h.notePaused(false)
		if h.holdsThread {
			pausedThreads.leave(nil)
		}
		if c.handshakeErr == errPanicked {
			c.release()
		}
		c.hs = nil
	}()
	err := h.run()
	if err != nil && c.isClient && h.offered != nil {
		c.evictSession() // RFC 5077, section 3.2
	}
	c.handshakeErr = nil
	return err
}

var errPanicked = errors.New("ossl: a callback panicked during the handshake")

func (h *handshake) run() error {
	c := h.c
	if !c.isClient { // nothing is made for a peer that says nothing
		if err := h.fill(); err != nil {
			return err
		}
	}
	step, err := h.begin()
	for {
		if err != nil {
			return err
		}
		if err := h.afterStep(step); err != nil {
			return err
		}
		switch step.Status {
		case libssl.Done:
			return h.finish()
		case libssl.WantRead:
			if err := h.fill(); err != nil {
				return err
			}
		case libssl.WantWrite: // sent by afterStep
		case libssl.Closed:
			return io.EOF
		case libssl.NeedHello:
			switched, err := h.answerHello()
			if err != nil {
				return err
			}
			if switched != nil {
				step = *switched
				continue
			}
		case libssl.NeedVerify:
			if err := h.answerVerify(); err != nil {
				return err
			}
		case libssl.NeedResume:
			if err := h.answerResume(); err != nil {
				return err
			}
		case libssl.NeedSign:
			if err := h.answerSign(); err != nil {
				return err
			}
		case libssl.NeedCert:
			if err := h.answerCertificate(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("ossl: unexpected status %d of a handshake", step.Status)
		}
		step, err = h.step()
	}
}

// afterStep verifies the connection as a whole when it is time, writes the key log, and sends the step's output: nothing leaves
// before ossl and the callbacks have agreed.
func (h *handshake) afterStep(step libssl.Step) error {
	out, keylog, err := h.take(step)
	if err == nil && step.Status != libssl.Fatal {
		if err = h.agree(step); err != nil {
			out = h.refusalAlert()
		}
	}
	if keylog != "" {
		if err := h.c.writeKeyLog(keylog); err != nil {
			return err
		}
	}
	if err == nil && !h.c.isClient && len(h.sessions) > 0 {
		h.c.cacheSessions(h.sessions, h.sessionVersion) // before the client can come back with one
		h.sessions = nil
	}
	if len(out) > 0 && !(err == nil && h.hold(step, out)) {
		if sendErr := h.send(out); err == nil {
			err = sendErr
		}
	}
	if err == nil && step.Status == libssl.WantRead {
		h.out.put() // others use it while we wait
		h.out = nil
	}
	return err
}

// take returns a step's output and its key-log lines. After a fatal step, err says why the handshake ends.
func (h *handshake) take(step libssl.Step) (out []byte, keylog string, err error) {
	c := h.c
	ssl, err := c.engine.lock()
	if err != nil {
		return nil, "", err
	}
	defer c.engine.unlock()
	keylog = string(ssl.KeyLog())
	out = h.out.mem[:step.Produced]
	if spill := ssl.Spill(); len(spill) > 0 {
		out = append(out[:len(out):len(out)], spill...)
	}
	h.done = step.Status == libssl.Done
	if !c.isClient && !h.done && c.state.ServerName == "" { // so that a failed handshake has it too
		c.state.ServerName = ssl.ServerName()
	}
	if h.offered != nil && !h.resumed && h.negotiated && h.agreed {
		h.resume()
	}
	h.sessions, h.sessionVersion = append(h.sessions, ssl.Sessions()...), h.version
	if step.Status == libssl.Fatal {
		out, err = h.failed(ssl, out)
	}
	return out, keylog, err
}

// agree returns an error if ossl or a callback ends the handshake after a step that succeeded. mu is not held: it calls
// callbacks.
func (h *handshake) agree(step libssl.Step) error {
	if h.refused == nil {
		h.refused = h.checkMasterSecret()
	}
	if h.refused == nil && h.timeToVerify(step) {
		h.refused = h.verifyConnection()
	}
	if h.refused != nil {
		return h.refused.err
	}
	return nil
}

// finish takes the negotiated parameters over and opens the connection for use.
func (h *handshake) finish() error {
	alert, err := h.checkFinished()
	if err != nil && alert != nil {
		_ = h.send(alert)
	}
	if err == nil && h.c.isClient {
		h.c.keepSessions(h.sessions)
	}
	return err
}

// checkFinished is finish without what it sends if there is an error.
func (h *handshake) checkFinished() (alert []byte, err error) {
	c := h.c
	ssl, err := c.engine.lock()
	if err != nil {
		return nil, err
	}
	defer c.engine.unlock()
	facts := h.facts
	c.fillState(facts)
	if facts.Resumed && h.lookedUp != nil { // else it is the new one's
		c.in.cachedID = h.lookedUp
	}
	if err := c.checkALPN(); err != nil {
		return h.lateAlert(ssl, alertUnsupportedExtension), err
	}
	if err := h.checkVerified(); err != nil {
		return h.lateAlert(ssl, alertInternalError), err
	}
	if c.context().opts.records == RecordsOwn && !facts.TakenOver && !facts.Deferred {
		return nil, errors.New("ossl: the connection can't be taken over from libssl, as WithRecordPath(RecordsOwn) asks")
	}
	c.state.HandshakeComplete = true
	if facts.Version < tls.VersionTLS13 && !facts.ExtendedMasterSecret {
		c.exportErr = errors.New("crypto/tls: ExportKeyingMaterial is unavailable when neither TLS 1.3 nor Extended " +
			"Master Secret are negotiated")
	}
	stdtls.SetExporter(&c.state, c.ExportKeyingMaterial)
	c.beginRecords(ssl, facts.TakenOver)
	c.complete.Store(true)
	return nil, nil
}

// lateAlert seals an alert after the last step, if the connection was taken over from libssl, and returns it behind the queued
// records, which were sealed before it. mu is held.
func (h *handshake) lateAlert(ssl *libssl.Conn, description uint8) []byte {
	if !h.facts.TakenOver {
		return nil
	}
	out := make([]byte, 64)
	var step libssl.Step
	_, side := ssl.Sides()
	side.Seal(&step, record.Alert, []byte{alertLevelFatal, description}, out, 0, 0, 0)
	return append(h.c.engine.queue.take(), out[:step.Produced]...)
}
