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
)

// A handshake is the state of one that is under way.
type handshake struct {
	c   *Conn
	ctx context.Context
	tls *libssl.Conn // nil before the first step
	out *buffer      // the output window, nil while the peer is waited for
	// verifier is what libssl's callbacks reach; its conn is set only during a step, so that an abandoned connection can be
	// collected.
	verifier *verifierRef
	scan     recordScanner
	tail     [recordHeaderLen]byte // the last bytes that libssl took
	tailLen  int
	started  bool // the first record's header was checked

	refused            *refusal // the decision that ended it
	panicked           any      // by a callback beneath libssl, to go on above it
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

// verifierRef is what C's handle refers to.
type verifierRef struct{ conn *Conn }

func (r *verifierRef) VerifyChain(packed []byte) libssl.Verdict {
	if r.conn == nil {
		return libssl.VerdictInternal
	}
	return r.conn.verifyBeneath(packed)
}

func (r *verifierRef) Resume(packed []byte) bool {
	if r.conn == nil {
		return false
	}
	return r.conn.resumeBeneath(packed)
}

func (h *handshake) version() uint16 { return h.tls.Version() }

// runHandshake runs the handshake to its end. handshakeMu and readMu are held.
func (c *Conn) runHandshake(ctx context.Context) error {
	if c.configErr != nil {
		return c.configErr
	}
	if c.isClient && c.serverName == "" && !c.ctx.config.InsecureSkipVerify {
		return errNoServerName
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
		if c.handshakeErr == errPanicked {
			c.release()
		}
		c.hs = nil
	}()
	err := h.run()
	if err != nil && c.isClient && h.offered != nil {
		c.evictSession() // RFC 5077, section 3.2
	}
	if h.panicked != nil {
		panic(h.panicked)
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

// callsGo reports whether libssl may have to call Go in this handshake, rather than pause.
func (h *handshake) callsGo() bool {
	c := h.c
	config := c.ctx.config
	if c.isClient {
		return !c.ctx.pauses || c.ctx.signs || config.GetClientCertificate != nil
	}
	return config.ClientAuth != tls.NoClientCert || c.ctx.signs || config.GetCertificate != nil
}

// begin makes the SSL and takes the first step.
func (h *handshake) begin() (libssl.Step, error) {
	c := h.c
	name := ""
	var session []byte
	if c.isClient {
		name = hostnameInSNI(c.serverName)
		session = h.loadSession()
	} else {
		c.ctx.refreshTicketKeys()
		if !c.ctx.hellos {
			h.key, _ = c.ctx.config.Certificates[0].PrivateKey.(*Key)
		}
	}
	if h.callsGo() {
		h.verifier = &verifierRef{}
		t, err := c.ctx.ssl.NewConn(!c.isClient, name, session, h.verifier)
		if err != nil {
			return libssl.Step{}, libraryError(err)
		}
		h.adopt(t)
		return h.step()
	}
	h.takeBuffer()
	in := c.in.data
	t, step, err := c.ctx.ssl.Start(!c.isClient, name, session, in, h.out.mem)
	if err != nil {
		return libssl.Step{}, libraryError(err)
	}
	h.consume(step.Consumed)
	h.adopt(t)
	return step, nil
}

// adopt makes t the connection's SSL, freed by release or, if the connection is dropped, with it.
func (h *handshake) adopt(t *libssl.Conn) {
	c := h.c
	c.mu.Lock()
	defer c.unlock()
	c.tls, h.tls = t, t
	c.cleanup = runtime.AddCleanup(c, func(t *libssl.Conn) { t.Free(false, nil) }, t)
}

// step takes a step with the input there is.
func (h *handshake) step() (libssl.Step, error) {
	c := h.c
	if h.verifier != nil {
		// Each step that may call Go, or a token, can hold a thread for as long as a signer or a callback takes. Who waits for its
		// turn with a key doesn't keep the Context's others from theirs.
		if h.key != nil && h.key.slots != nil {
			turns := h.key.slots
			if err := h.enter(turns); err != nil {
				return libssl.Step{}, err
			}
			defer func() { <-turns }()
		}
		slots := c.ctx.slots
		if err := h.enter(slots); err != nil {
			return libssl.Step{}, err
		}
		defer func() { <-slots }()
	}
	h.takeBuffer()
	c.mu.Lock()
	defer c.unlock()
	if c.tls == nil || c.released.Load() {
		return libssl.Step{}, net.ErrClosed
	}
	if h.verifier != nil {
		h.verifier.conn = c
		defer func() { h.verifier.conn = nil }()
	}
	step := h.tls.Handshake(c.in.data, h.out.mem, &h.facts)
	h.consume(step.Consumed)
	return step, nil
}

// enter waits for room in slots.
func (h *handshake) enter(slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case slots <- struct{}{}:
		return nil
	case <-h.ctx.Done():
		return h.ctx.Err()
	case <-h.c.closed():
		return net.ErrClosed
	}
}

// consume follows what libssl took of the input.
func (h *handshake) consume(n int) {
	data := h.c.in.data[:n]
	h.scan.scan(data)
	copy(h.tail[:], data[max(0, n-len(h.tail)):])
	h.tailLen = min(n, len(h.tail))
	h.c.in.consume(n)
}

// afterStep writes the key log, lets the connection be verified as a whole when it is time, and sends what the step produced:
// nothing leaves before it is agreed to.
func (h *handshake) afterStep(step libssl.Step) error {
	out, keylog, err := h.agree(step)
	if keylog != "" {
		if err := h.c.writeKeyLog(keylog); err != nil {
			return err
		}
	}
	if err == nil && !h.c.isClient && len(h.sessions) > 0 {
		h.c.cacheSessions(h.sessions, h.sessionVersion) // before the client can come back with one
		h.sessions = nil
	}
	if len(out) > 0 {
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

// agree returns what to send after a step, what to log, and why the handshake ends.
func (h *handshake) agree(step libssl.Step) (out []byte, keylog string, err error) {
	c := h.c
	c.mu.Lock()
	defer c.unlock()
	if c.tls == nil {
		return nil, "", net.ErrClosed
	}
	keylog = string(h.tls.KeyLog())
	out = h.out.mem[:step.Produced]
	if spill := h.tls.Spill(); len(spill) > 0 {
		out = append(out[:len(out):len(out)], spill...)
	}
	h.done = step.Status == libssl.Done
	if h.offered != nil && !h.resumed && h.tls.Negotiated() && h.tls.Resumed() {
		h.resume()
	}
	h.sessions, h.sessionVersion = append(h.sessions, h.tls.Sessions()...), h.version()
	if h.refused == nil && step.Status != libssl.Fatal {
		h.refused = h.checkMasterSecret()
	}
	if h.refused == nil && step.Status != libssl.Fatal && h.timeToVerify(step) {
		h.refused = c.verifyConnection()
	}
	switch {
	case step.Status == libssl.Fatal:
		out, err = h.failed(out)
	case h.refused != nil: // libssl does not know yet: what it sealed is not sent, an alert is
		out, err = h.refusalAlert(), h.refused.err
	}
	return out, keylog, err
}

// timeToVerify reports whether VerifyConnection is to be asked now, between a step and the sending of its output, where neither a
// pause nor a callback is the place for it: on TLS 1.2 clients, whose OCSP response comes after the certificate; on servers that
// ask for no certificate; where a session is resumed. No key protects what is sent at these points, so that any alert can be
// sent; on TLS 1.3 clients one does, and there is a way to use it.
func (h *handshake) timeToVerify(step libssl.Step) bool {
	config := h.c.ctx.config
	if !h.c.verifiesConnection() || h.connectionVerified || !h.tls.Negotiated() {
		return false
	}
	if h.c.isClient {
		return (h.version() < tls.VersionTLS13 || h.resumed) && h.c.state.PeerCertificates != nil && step.Status != libssl.NeedVerify &&
			(step.Produced > 0 || step.Status == libssl.NeedCert || step.Status == libssl.Done)
	}
	return (config.ClientAuth == tls.NoClientCert || h.tls.Resumed()) && step.Produced > 0
}

// refusalAlert returns the alert for a refusal, in place of what a step has produced. mu is held.
func (h *handshake) refusalAlert() []byte {
	if h.c.isClient && h.version() >= tls.VersionTLS13 {
		step := h.tls.RefuseFlight(h.refused.alert, h.out.mem)
		return h.out.mem[:step.Produced]
	}
	return plaintextAlert(h.refused.alert)
}

// failed returns what to send and to return after a fatal step. mu is held.
func (h *handshake) failed(out []byte) ([]byte, error) {
	alert, err := fatalError("handshake", h.tls, h.tail[:h.tailLen])
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
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if c.writeErr != nil {
		return c.writeErr
	}
	n, err := c.conn.Write(out)
	c.bytesSent += int64(n)
	if err != nil {
		c.writeErr = permanent(err)
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
				return nil
			}
		}
	}
}

// answerVerify decides on the peer's chain at a client's pause.
func (h *handshake) answerVerify() error {
	c := h.c
	c.mu.Lock()
	defer c.unlock()
	if c.tls == nil {
		return net.ErrClosed
	}
	r := c.verifyChain(h.tls.Message())
	if r == nil && h.version() >= tls.VersionTLS13 {
		r = c.verifyConnection()
	}
	if r != nil {
		h.refused = r
		h.tls.Refuse(r.verdict(), r.alert)
		return nil
	}
	h.tls.SetVerdict(libssl.VerdictOK)
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
	c.mu.Lock()
	defer c.unlock()
	if c.tls == nil {
		return nil, net.ErrClosed
	}
	facts := h.facts
	c.fillState(facts)
	if facts.Resumed && h.lookedUp != nil { // else it is the new one's
		c.cachedID = h.lookedUp
	}
	c.takenOver.Store(facts.TakenOver)
	if err := c.checkALPN(); err != nil {
		return h.lateAlert(alertUnsupportedExtension), err
	}
	if err := h.checkVerified(); err != nil {
		return h.lateAlert(alertInternalError), err
	}
	if c.ctx.opts.records == RecordsOwn && !facts.TakenOver && !facts.Deferred {
		return nil, errors.New("ossl: the connection can't be taken over from libssl, as WithRecordPath(RecordsOwn) asks")
	}
	c.state.HandshakeComplete = true
	if facts.Version < tls.VersionTLS13 && !facts.ExtendedMasterSecret {
		c.exportErr = errors.New("crypto/tls: ExportKeyingMaterial is unavailable when neither TLS 1.3 nor Extended " +
			"Master Secret are negotiated")
	}
	stateExporter.set(&c.state, c.ExportKeyingMaterial)
	if facts.TakenOver {
		c.opened.begin(h.tls, c.state.Version, c.isClient)
	}
	c.complete.Store(true)
	return nil, nil
}

// lateAlert seals an alert after the last step, if the keys are here and not libssl's. mu is held.
func (h *handshake) lateAlert(description uint8) []byte {
	if !h.c.takenOver.Load() {
		return nil
	}
	out := make([]byte, 64)
	step := h.tls.Seal(record.Alert, []byte{alertLevelFatal, description}, out, 0, 0, 0)
	return out[:step.Produced]
}

// checkVerified refuses a handshake that is done without a decision that the configuration asks for. None comes here by any path
// that is known; it is here for the others.
func (h *handshake) checkVerified() error {
	c, config := h.c, h.c.ctx.config
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
	for _, p := range c.ctx.config.NextProtos {
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
	s.ServerName = f.ServerName
	if c.isClient {
		s.ServerName = hostnameInSNI(c.serverName)
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
	stateHelloRetry.set(s, f.HelloRetry)
	if !f.Resumed {
		local := c.hs.local
		if !c.isClient && !c.ctx.hellos {
			local = c.ctx.config.Certificates[0].Certificate
		}
		stateLocal.set(s, local)
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
	_, err := io.WriteString(c.ctx.config.KeyLogWriter, lines)
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
