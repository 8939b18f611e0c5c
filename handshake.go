package ossl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"

	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/heldkey"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/netio"
	"github.com/ossl-go/ossl/internal/record"
)

// libssl runs the handshake, one step at a time. A step takes the input that has arrived and makes
// output. Between two steps, Go sends the output and reads more input. If libssl needs a decision
// that is Go's, the step stops with a question, and the next step continues with the answer:
//
//	server  NeedHello     which configuration, certificate and session to use
//	        NeedResume *  whether to resume the session that a client with this chain offers
//	        NeedVerify *  whether to accept the client's chain
//	        NeedSign *    the signature of a crypto.Signer
//	        NeedPSK *     the pre-shared key of a TLS 1.2 client
//	client  NeedVerify    whether to accept the server's chain (* on OpenSSL 1.1.1)
//	        NeedCert      which certificate to send
//	        NeedSign *    the signature of a crypto.Signer
//
// libssl can't pause for the questions marked *. A handshake that may come to one runs its steps in
// a coroutine of C, which pauses instead (internal/libssl/coroutine.c). If a coroutine is a thread,
// the handshake keeps the thread, and a place at the gate pausedThreads, until the next step.
//
// Callbacks of the configuration and signers run between two steps, on the goroutine that called
// Handshake, Read or Write. The engine is not locked, and no place at another gate is held. So a
// callback may take its time, panic, or wait for another handshake. Close works at any time: it
// frees the SSL, and the next attempt to lock the engine returns net.ErrClosed.
//
// Nothing that a step has made is sent before ossl's own checks and VerifyConnection agree to it:
// deliver sends either the output or, if they refuse, crypto/tls's alert in its place.

// A handshake is the state of a handshake that is under way.
type handshake struct {
	c   *Conn
	ctx context.Context // the caller's

	next  sequel
	place *gate.Gate // of WithMaxHandshakes, if the handshake has a place there

	// Set by callbackContext.
	forCallbacks context.Context    // nil until a callback needs it
	cancel       context.CancelFunc // of forCallbacks

	// Set by prepare and begin.
	asking  bool   // the SSL may ask questions for which libssl doesn't pause
	session []byte // the session that a client offers, in libssl's encoding
	begun   bool   // the SSL exists

	// Set by fill and consume.
	in           *netio.Input // the connection's
	scan         record.Scanner
	tail         [record.HeaderLen]byte // the last bytes that libssl took
	tailLen      int
	heard        bool // something was received
	firstChecked bool // the first record's header was checked

	// Set by note after each step, for code that doesn't lock the engine.
	version              uint16 // as far as it is known
	negotiated           bool   // a ServerHello, not a HelloRetryRequest, was sent or received
	agreed               bool   // client and server agreed to resume a session
	extendedMasterSecret bool
	answered             bool         // a server has made its first flight, with its signature
	done                 bool         // the last step has completed the handshake
	facts                libssl.Facts // once it is done
	paused               bool         // the last step has paused in its coroutine
	holdsThread          bool         // it has, and keeps its place at pausedThreads until the next step

	window *netio.Buffer // of a step's output; nil while the peer is waited for
	stepResult

	// Set by a server's answer to the ClientHello (handshake_hello.go) and a client's to the
	// CertificateRequest (handshake_certificate.go).
	helloDone   bool // the ClientHello was answered
	rereads     bool // the next message is the ClientHello again, which was traced
	credential  *libssl.Credential
	certificate *tls.Certificate // that a server has chosen
	key         *heldkey.Key     // of the chosen certificate, if OpenSSL holds it
	local       [][]byte         // the chosen chain

	// Set by the verification of the peer (handshake_peer.go).
	chainDecided       bool     // the peer's chain, or its absence, was decided on
	connectionVerified bool     // VerifyConnection was asked
	refused            *refusal // the reason why the handshake fails, or nil
	refusing           *refusal // the reason why it will fail when the server's flight is complete, or nil

	psk           handshakePSK
	noCertificate *refusal // the reason why a server fails if the client has no pre-shared key, or nil

	// Set by the decisions on resumption (sessions.go, clientsession.go).
	offered  *storedSession // a client's offer, or a server's candidate
	resumed  bool           // offered was resumed
	lookedUp []byte         // the session's ID in the cache, if it stays there
	inCache  bool           // the cache had the session
}

// A stepResult is what note takes out of the SSL after a step, for deliver.
type stepResult struct {
	output   []byte           // in the handshake's window, or a copy
	keyLog   string           // lines for KeyLogWriter
	messages []libssl.Message // to trace
	sessions []libssl.Session // that the handshake has made, in earlier steps too
	failure  error            // the reason why the step was fatal, or nil
	alert    uint8            // that the step or ossl has sent, or 0
}

var errPanicked = errors.New("ossl: a callback panicked during the handshake")

// runHandshake runs the handshake to its end. The caller holds handshakeMu and the reader's lock.
func (c *Conn) runHandshake(ctx context.Context, next sequel) error {
	defer c.unpin()
	if c.configErr != nil {
		return c.configErr
	}
	if c.isClient && c.serverName == "" && !c.context().config.InsecureSkipVerify && !c.context().opts.psk.clientsNeed() {
		return errNoServerName
	}
	if c.isClient {
		if err := checkServerName(c.serverName); err != nil {
			return err
		}
	}
	growStack()
	if to := c.context().trace; to != nil {
		c.watch.tracer = c.newTracer(to)
	}
	h := &handshake{c: c, ctx: ctx, next: next, in: &c.in.Input}
	c.handshakeErr = errPanicked // remains if a callback panics
	defer h.end()
	err := h.run()
	c.watch.alertSent = h.alert
	if err != nil {
		c.pskIdentity.Store(nil)
	}
	if err != nil && c.isClient && h.offered != nil {
		h.evictSession()
	}
	c.handshakeErr = nil
	return err
}

// end releases the handshake's buffers and places at gates, even after a callback has panicked.
func (h *handshake) end() {
	if h.window != nil {
		h.window.Put()
	}
	if h.cancel != nil {
		h.cancel()
	}
	h.forgetPSKOffer()
	h.notePaused(false)
	if h.holdsThread {
		pausedThreads.Leave(nil)
	}
	if h.place != nil {
		h.place.Leave(nil)
	}
	if h.c.handshakeErr == errPanicked {
		h.c.release()
	}
}

// callbackContext returns the context for callbacks. It is cancelled when the handshake is over, as
// in crypto/tls.
func (h *handshake) callbackContext() context.Context {
	if h.forCallbacks == nil {
		h.forCallbacks, h.cancel = context.WithCancel(h.ctx)
	}
	return h.forCallbacks
}

// run runs the handshake.
func (h *handshake) run() error {
	if !h.c.isClient { // for a client that sends nothing, no SSL is made
		if err := h.fill(); err != nil {
			return err
		}
		if err := h.takePlace(); err != nil {
			return err
		}
	}
	memory.begin()
	defer memory.end()
	for {
		step, err := h.step()
		if err != nil {
			return err
		}
		if err := h.deliver(step); err != nil {
			return err
		}
		if step.Status == libssl.Done {
			return h.finish()
		}
		if err := h.answer(step.Status); err != nil {
			return err
		}
	}
}

// takePlace waits for a place among the servers' handshakes, if WithMaxHandshakes bounds them.
func (h *handshake) takePlace() error {
	places := h.c.context().opts.handshakes
	if places == nil {
		return nil
	}
	if err := places.Enter(nil, h.wait); err != nil {
		return err
	}
	h.place = places
	return nil
}

// answer reads the input or makes the decision that the next step needs.
func (h *handshake) answer(need libssl.Status) error {
	switch need {
	case libssl.WantRead:
		return h.fill()
	case libssl.WantWrite: // deliver has emptied the window
		return nil
	case libssl.NeedHello:
		return h.processClientHello()
	case libssl.NeedResume:
		return h.checkForResumption()
	case libssl.NeedVerify:
		return h.verifyPeer()
	case libssl.NeedCert:
		return h.processCertificateRequest()
	case libssl.NeedSign:
		return h.sign()
	case libssl.NeedPSK:
		return h.lookUpPSK()
	case libssl.Closed:
		return io.EOF
	}
	return fmt.Errorf("ossl: unexpected status %d of a handshake", need)
}

// withSSL locks the engine and calls f. It returns net.ErrClosed if the SSL was freed.
func (h *handshake) withSSL(f func(ssl *libssl.Conn)) error {
	ssl, err := h.c.engine.lock()
	if err != nil {
		return err
	}
	defer h.c.engine.unlock()
	f(ssl)
	return nil
}

// deliver sends the output of a step, provided that ossl and VerifyConnection agree to it, or else
// an alert. Before that it writes the key log and puts the sessions that a server has made into the
// cache, since the client may come back with one at once.
func (h *handshake) deliver(step libssl.Step) error {
	out, err := h.output, h.failure
	if err == nil {
		if err = h.agree(step); err != nil {
			out = h.refusalAlert()
		}
	}
	h.trace(err != nil)
	if h.keyLog != "" {
		if err := h.writeKeyLog(); err != nil {
			return err
		}
	}
	if err == nil && !h.c.isClient && len(h.sessions) > 0 {
		h.cacheSessions()
	}
	if len(out) > 0 && !(err == nil && h.hold(step, out)) {
		if sendErr := h.send(out); err == nil {
			err = sendErr
		}
	}
	if err == nil && step.Status == libssl.WantRead { // an idle handshake holds no buffer
		h.window.Put()
		h.window, h.output = nil, nil
	}
	return err
}

// agree returns an error if ossl or a callback refuses the handshake after a step that succeeded.
func (h *handshake) agree(step libssl.Step) error {
	if h.refused == nil {
		h.refused = h.checkMasterSecret()
	}
	if h.refused == nil {
		h.refused = h.checkPSK()
	}
	if h.refused == nil && h.timeToVerify(step) {
		h.refused = h.verifyConnection()
	}
	if h.refused != nil {
		h.alert = h.refused.alert
		return h.refused.err
	}
	return nil
}
