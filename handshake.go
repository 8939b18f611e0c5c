package ossl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"

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

// consume follows what libssl took of the input.
func (h *handshake) consume(n int) {
	data := h.c.in.data[:n]
	h.scan.scan(data)
	copy(h.tail[:], data[max(0, n-len(h.tail)):])
	h.tailLen = min(n, len(h.tail))
	h.c.in.consume(n)
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

// hold queues the output of a TLS 1.3 server's last step, its tickets, so that they leave with the server's next record. It
// reports whether it did. A client that only writes would leave the tickets unread. If a socket with unread data is closed, the
// kernel sends a reset, which destroys data that was not delivered yet.
func (h *handshake) hold(step libssl.Step, out []byte) bool {
	c := h.c
	if step.Status != libssl.Done || c.isClient {
		return false
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if _, err := c.engine.lock(); err != nil {
		return false
	}
	defer c.engine.unlock()
	if h.version < tls.VersionTLS13 || !c.engine.queue.hold(out) {
		return false
	}
	c.out.sizes.bytes += int64(len(out)) // counted as sent, so that later records have the sizes that crypto/tls gives them
	if len(c.in.data) == 0 {
		c.watchSilence()
	}
	return true
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

// timeToVerify reports whether VerifyConnection is to be asked now, between a step and the sending of its output, where neither a
// pause nor a callback is the place for it: on TLS 1.2 clients, whose OCSP response comes after the certificate; on servers that
// ask for no certificate; where a session is resumed. No key protects what is sent at these points, so that any alert can be
// sent; on TLS 1.3 clients one does, and there is a way to use it.
func (h *handshake) timeToVerify(step libssl.Step) bool {
	config := h.c.context().config
	if !h.c.verifiesConnection() || h.connectionVerified || !h.negotiated {
		return false
	}
	if h.c.isClient {
		return (h.version < tls.VersionTLS13 || h.resumed) && h.c.state.PeerCertificates != nil && step.Status != libssl.NeedVerify &&
			(step.Produced > 0 || step.Status == libssl.NeedCert || step.Status == libssl.Done)
	}
	return (config.ClientAuth == tls.NoClientCert || h.agreed) && step.Produced > 0
}

// refusalAlert returns the alert for a refusal that libssl doesn't know of. It is sent instead of the step's output.
func (h *handshake) refusalAlert() []byte {
	c := h.c
	ssl, err := c.engine.lock()
	if err != nil {
		return nil
	}
	defer c.engine.unlock()
	if c.isClient && h.version >= tls.VersionTLS13 {
		step := ssl.RefuseFlight(h.refused.alert, h.out.mem)
		return h.out.mem[:step.Produced]
	}
	return plaintextAlert(h.refused.alert)
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

func (h *handshake) send(out []byte) error {
	c := h.c
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.err != nil {
		return c.out.err
	}
	n, err := c.conn.Write(out)
	c.out.sizes.bytes += int64(n)
	if err != nil {
		c.out.err = permanent(err)
		return err
	}
	return nil
}

// fill reads from the peer. The first record's header is looked at here, before libssl sees it.
func (h *handshake) fill() error {
	c := h.c
	for {
		err := c.in.fill(c.conn)
		switch {
		case err == io.EOF && (len(c.in.data) > 0 || !h.scan.atBoundary()):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case h.started:
			return nil
		case len(c.in.data) >= recordHeaderLen:
			header := c.in.data[:recordHeaderLen]
			alert, err := checkFirstRecord(header, c.conn)
			if err != nil && alert >= 0 {
				_ = h.send(plaintextAlert(uint8(alert)))
			}
			if err != nil {
				return err
			}
			// A server makes nothing of libssl's before a first record is whole; one that is too long is libssl's to refuse.
			if n := int(header[3])<<8 | int(header[4]); c.isClient || n > maxPlaintext || len(c.in.data) >= recordHeaderLen+n {
				h.started = true
				if n := longHello(c.in.data); n > 0 && !c.isClient {
					_ = h.send(plaintextAlert(alertInternalError))
					return errLongMessage(n)
				}
				return nil
			}
		}
	}
}

// question returns a copy of the message that libssl asks about, since Close may free the connection while Go decides. put frees
// the copy.
func (h *handshake) question() (message []byte, put func(), err error) {
	c := h.c
	ssl, err := c.engine.lock()
	if err != nil {
		return nil, nil, err
	}
	defer c.engine.unlock()
	asked := ssl.Message()
	buf := getBuffer(smallBuffers)
	return append(buf.mem[:0:len(buf.mem)], asked...), buf.put, nil
}

// answerVerify decides on the peer's chain.
func (h *handshake) answerVerify() error {
	c := h.c
	chain, put, err := h.question()
	if err != nil {
		return err
	}
	r := h.verifyChain(chain)
	put()
	// A TLS 1.2 client calls VerifyConnection later, when it has the OCSP response.
	if r == nil && (!c.isClient || h.version >= tls.VersionTLS13) {
		r = h.verifyConnection()
	}
	ssl, err := c.engine.lock()
	if err != nil {
		return err
	}
	defer c.engine.unlock()
	if r != nil {
		h.refused = r
		ssl.Refuse(r.verdict(), r.alert)
		return nil
	}
	ssl.SetVerdict(libssl.VerdictOK)
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

// checkVerified refuses a handshake that is done without a decision that the configuration asks for. None comes here by any path
// that is known; it is here for the others.
func (h *handshake) checkVerified() error {
	c, config := h.c, h.c.context().config
	certs, chains := len(c.state.PeerCertificates) > 0, len(c.state.VerifiedChains) > 0
	ok := h.refused == nil && (!c.verifiesConnection() || h.connectionVerified)
	if c.isClient || config.ClientAuth != tls.NoClientCert {
		ok = ok && (h.chainDecided || h.resumed)
	}
	if c.isClient {
		ok = ok && certs && (chains || config.InsecureSkipVerify)
	} else {
		switch config.ClientAuth {
		case tls.RequireAnyClientCert:
			ok = ok && certs
		case tls.VerifyClientCertIfGiven:
			ok = ok && (chains || !certs)
		case tls.RequireAndVerifyClientCert:
			ok = ok && certs && chains
		}
	}
	if !ok {
		return errors.New("ossl: internal error: the handshake is done and the peer is not verified")
	}
	return nil
}

// checkALPN refuses a server's choice that was not offered, as crypto/tls does; not every libssl does.
func (c *Conn) checkALPN() error {
	if !c.isClient || c.state.NegotiatedProtocol == "" {
		return nil
	}
	for _, p := range c.context().config.NextProtos {
		if p == c.state.NegotiatedProtocol {
			return nil
		}
	}
	return fmt.Errorf("tls: server selected unadvertised ALPN protocol %q", c.state.NegotiatedProtocol)
}

// fillState fills the connection's state from what libssl knows.
func (c *Conn) fillState(f libssl.Facts) {
	s := &c.state
	s.Version = f.Version
	s.CipherSuite = f.CipherSuite
	s.CurveID = tls.CurveID(f.Group)
	s.DidResume = f.Resumed
	s.NegotiatedProtocol = f.ALPN
	//lint:ignore SA1019 deprecated, and set by crypto/tls
	s.NegotiatedProtocolIsMutual = true // for VerifyConnection
	if !c.isClient {
		s.ServerName = f.ServerName
	}
	ocsp, scts := f.OCSPResponse, f.SCTs
	if c.hs.resumed {
		ocsp, scts = c.hs.offered.ocsp, c.hs.offered.scts
		if s.CurveID == 0 {
			s.CurveID = tls.CurveID(c.hs.offered.group)
		}
	}
	s.OCSPResponse = ocsp
	s.SignedCertificateTimestamps, _ = parseSCTs(scts)
	stdtls.SetHelloRetry(s, f.HelloRetry)
	if !f.Resumed {
		local := c.hs.local
		if !c.isClient && !c.context().hellos {
			local = c.context().config.Certificates[0].Certificate
		}
		stdtls.SetLocalCertificate(s, local)
	}
	if f.Version < tls.VersionTLS13 && (!f.Resumed || f.ExtendedMasterSecret) {
		// The first Finished: the client's in a full handshake, the server's in a resumed one (RFC 5929, section 3.1).
		if c.isClient != f.Resumed {
			s.TLSUnique = f.LocalFinished
		} else {
			s.TLSUnique = f.PeerFinished
		}
	}
}

// keyLogMu keeps the lines of connections that share a writer apart, as crypto/tls does.
var keyLogMu sync.Mutex

func (c *Conn) writeKeyLog(lines string) error {
	keyLogMu.Lock()
	defer keyLogMu.Unlock()
	_, err := io.WriteString(c.context().config.KeyLogWriter, lines)
	return err
}

// hostnameInSNI returns the name to send for host: none for IP addresses, and no trailing dot (RFC 6066, section 3).
func hostnameInSNI(name string) string {
	host := name
	if len(host) > 0 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	for i := len(host) - 1; i > 0; i-- {
		if host[i] == '%' {
			host = host[:i]
			break
		}
	}
	if net.ParseIP(host) != nil {
		return ""
	}
	for len(name) > 0 && name[len(name)-1] == '.' {
		name = name[:len(name)-1]
	}
	return name
}
