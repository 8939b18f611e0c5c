package ossl

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// finish opens the connection for use, after the last step.
func (h *handshake) finish() error {
	var failure error
	var alert []byte
	if err := h.withSSL(func(ssl *libssl.Conn) { alert, failure = h.establish(ssl) }); err != nil {
		return err
	}
	if failure != nil {
		if alert != nil {
			_ = h.send(alert)
		}
		return failure
	}
	if h.c.isClient {
		h.c.keepSessions(h.sessions)
	}
	return nil
}

// establish checks the completed handshake, and hands the records to libssl or, if libssl no longer
// holds the connection, to ossl. After an error, alert is for the peer.
func (h *handshake) establish(ssl *libssl.Conn) (alert []byte, err error) {
	c, facts := h.c, h.facts
	h.fillState(facts)
	if facts.Resumed && h.lookedUp != nil { // else cachedID is a new session's
		c.in.cachedID = h.lookedUp
	}
	if err := h.checkALPN(); err != nil {
		return h.lateAlert(ssl, alertUnsupportedExtension), err
	}
	if err := h.checkVerified(); err != nil {
		return h.lateAlert(ssl, alertInternalError), err
	}
	if c.context().opts.records == RecordsDirect && !facts.TakenOver && !facts.Deferred {
		return nil, errors.New("ossl: the connection can't be taken over from libssl, as WithRecordPath(RecordsDirect) asks")
	}
	c.state.HandshakeComplete = true
	c.watch.resumption = h.resumption()
	var records RecordStats
	switch {
	case facts.TakenOver:
		records.Direct = 1
	case !facts.Deferred: // else it may be taken over later
		records.Libssl = 1
	}
	c.established(facts.HelloRetry, records)
	if facts.Version < tls.VersionTLS13 && !facts.ExtendedMasterSecret {
		c.exportErr = errors.New("crypto/tls: ExportKeyingMaterial is unavailable when neither TLS 1.3 nor Extended " +
			"Master Secret are negotiated")
	}
	stdtls.SetExporter(&c.state, c.ExportKeyingMaterial)
	c.beginRecords(ssl, facts.TakenOver)
	c.complete.Store(true)
	return nil, nil
}

// lateAlert seals an alert after the last step, if the connection was taken over from libssl. It
// returns the alert behind the queued records, which were sealed before.
func (h *handshake) lateAlert(ssl *libssl.Conn, description uint8) []byte {
	h.alert = description
	if !h.facts.TakenOver {
		return nil
	}
	out := make([]byte, 64)
	var step libssl.Step
	_, side := ssl.Sides()
	side.Seal(&step, record.Alert, []byte{alertLevelFatal, description}, out, 0, 0, 0)
	return append(h.c.engine.queue.take(), out[:step.Produced]...)
}

// fillState fills the connection's state.
func (h *handshake) fillState(f libssl.Facts) {
	c, s := h.c, &h.c.state
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
	if h.resumed {
		ocsp = h.offered.ocsp
		if len(scts) == 0 { // a TLS 1.2 server may send others
			scts = h.offered.scts
		}
		if s.CurveID == 0 {
			s.CurveID = tls.CurveID(h.offered.group)
		}
	}
	s.OCSPResponse = ocsp
	s.SignedCertificateTimestamps, _ = parseSCTs(scts)
	stdtls.SetHelloRetry(s, f.HelloRetry)
	if f.PSK {
		identity := h.psk.identity // not h, which would stay in memory
		c.pskIdentity.Store(&identity)
	}
	if !f.Resumed && !f.PSK {
		local := h.local
		if !c.isClient && !c.context().pausesAtHello {
			local = c.context().config.Certificates[0].Certificate
		}
		stdtls.SetLocalCertificate(s, local)
	}
	if f.Version < tls.VersionTLS13 && (!f.Resumed || f.ExtendedMasterSecret) {
		// The first Finished: the client's in a full handshake, the server's in a resumed one (RFC
		// 5929, section 3.1).
		if c.isClient != f.Resumed {
			s.TLSUnique = f.LocalFinished
		} else {
			s.TLSUnique = f.PeerFinished
		}
	}
}

// resumption returns how the handshake, which is done, has resumed a session.
func (h *handshake) resumption() Resumption {
	switch {
	case !h.facts.Resumed:
		return NotResumed
	case h.c.isClient:
		return resumptionOfClient(h.facts.Version, h.session)
	case h.inCache:
		return ResumedID
	}
	return ResumedTicket
}

// checkALPN refuses a server's choice that was not offered, as crypto/tls does and some libssl
// versions do not.
func (h *handshake) checkALPN() error {
	protocol := h.c.state.NegotiatedProtocol
	if !h.c.isClient || protocol == "" || slices.Contains(h.c.context().config.NextProtos, protocol) {
		return nil
	}
	return fmt.Errorf("tls: server selected unadvertised ALPN protocol %q", protocol)
}

// keyLogMu separates the lines of connections that share a writer, as crypto/tls does.
var keyLogMu sync.Mutex

// writeKeyLog writes the lines of a step.
func (h *handshake) writeKeyLog() error {
	keyLogMu.Lock()
	defer keyLogMu.Unlock()
	_, err := io.WriteString(h.c.context().config.KeyLogWriter, h.keyLog)
	return err
}

// hostnameInSNI returns the name that a client sends for name: "" for an IP address, and without a
// trailing dot (RFC 6066, section 3).
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
