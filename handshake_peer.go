package ossl

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/netio"
	"github.com/ossl-go/ossl/internal/record"
)

// A refusal is the reason why a handshake fails: the error for the caller, and the alert that
// crypto/tls sends.
type refusal struct {
	err   error
	alert uint8
}

// verdict returns the verdict for which libssl sends the refusal's alert, or one near it. As long
// as no key protects the alert, failed corrects it.
func (r *refusal) verdict() libssl.Verdict {
	switch r.alert {
	case alertUnknownCA:
		return libssl.VerdictUnknownCA
	case alertCertificateRevoked:
		return libssl.VerdictRevoked
	case alertCertificateExpired:
		return libssl.VerdictExpired
	case alertCertificateUnknown:
		return libssl.VerdictUnknown
	case alertUnsupportedCertificate:
		return libssl.VerdictUnsupported
	case alertInternalError:
		return libssl.VerdictInternal
	}
	return libssl.VerdictBad
}

// question calls decide with a copy of the message that libssl asks about, since Close may free the
// message.
func (h *handshake) question(decide func(message []byte)) error {
	buf := netio.Small.Get()
	defer buf.Put()
	message := buf.Mem[:0:len(buf.Mem)]
	if err := h.withSSL(func(ssl *libssl.Conn) { message = append(message, ssl.Message()...) }); err != nil {
		return err
	}
	decide(message)
	return nil
}

// verifyPeer decides on the peer's chain.
func (h *handshake) verifyPeer() error {
	h.chainDecided = true
	var r *refusal
	err := h.question(func(chain []byte) {
		switch {
		case h.needsPSK():
			r = &refusal{noPSK("the server uses its certificate"), alertHandshakeFailure}
		case h.c.isClient:
			r = h.verifyServerCertificate(chain)
		default:
			r = h.processCertsFromClient(chain)
		}
	})
	if err != nil {
		return err
	}
	// A TLS 1.2 client calls VerifyConnection later, when it has the OCSP response.
	if r == nil && (!h.c.isClient || h.version >= tls.VersionTLS13) {
		r = h.verifyConnection()
	}
	if r == nil {
		return h.withSSL(func(ssl *libssl.Conn) { ssl.SetVerdict(libssl.VerdictOK) })
	}
	h.refused = r // and the next step is fatal
	return h.withSSL(func(ssl *libssl.Conn) { ssl.Refuse(r.verdict(), r.alert) })
}

// verifyServerCertificate is crypto/tls's, without VerifyConnection.
func (h *handshake) verifyServerCertificate(chain []byte) *refusal {
	if len(chain) == 0 {
		return &refusal{errors.New("tls: received empty certificates message"), alertDecodeError}
	}
	return h.verifyCertificates(chain)
}

// processCertsFromClient is crypto/tls's, without VerifyConnection. chain is empty if the client
// has sent no certificate.
func (h *handshake) processCertsFromClient(chain []byte) *refusal {
	if len(chain) > 0 {
		return h.verifyCertificates(chain)
	}
	if !requiresCertificate(h.c.context().config.ClientAuth) {
		return h.verifyPeerCertificate(nil)
	}
	alert := uint8(alertCertificateRequired)
	if h.version < tls.VersionTLS13 {
		alert = alertHandshakeFailure
	}
	return &refusal{errors.New("tls: client didn't provide a certificate"), alert}
}

func requiresCertificate(auth tls.ClientAuthType) bool {
	return auth == tls.RequireAnyClientCert || auth == tls.RequireAndVerifyClientCert
}

// verifyCertificates verifies a chain that was sent.
func (h *handshake) verifyCertificates(chain []byte) *refusal {
	certs, chains, r := h.c.decide(chain)
	if r != nil {
		return r
	}
	h.c.state.PeerCertificates, h.c.state.VerifiedChains = certs, chains
	return h.verifyPeerCertificate(certs)
}

// verifyPeerCertificate calls the callback of that name.
func (h *handshake) verifyPeerCertificate(certs []*x509.Certificate) *refusal {
	verify := h.c.context().config.VerifyPeerCertificate
	if verify == nil {
		return nil
	}
	raw := make([][]byte, len(certs))
	for i, cert := range certs {
		raw[i] = bytes.Clone(cert.Raw) // other connections share the certificate
	}
	if err := verify(raw, h.c.state.VerifiedChains); err != nil {
		return &refusal{err, alertBadCertificate}
	}
	return nil
}

// verifiesConnection reports whether VerifyConnection or WithVerification is set.
func (h *handshake) verifiesConnection() bool {
	return h.c.context().config.VerifyConnection != nil || len(h.c.verify) > 0
}

// timeToVerify reports whether to call VerifyConnection after a step and before its output is sent,
// because libssl asks no question at the right moment. That is the case for TLS 1.2 clients, whose
// OCSP response comes after the certificate, for servers that ask for no certificate, and for
// resumed sessions. At these points no key protects the alert of a refusal, except on a client that
// resumes a TLS 1.3 session: refusalAlert protects it.
func (h *handshake) timeToVerify(step libssl.Step) bool {
	if !h.verifiesConnection() || h.connectionVerified || !h.negotiated {
		return false
	}
	if h.psk.agreed {
		return h.timeToVerifyPSK(step)
	}
	if !h.c.isClient {
		return (h.c.context().config.ClientAuth == tls.NoClientCert || h.agreed) && step.Produced > 0
	}
	if h.version >= tls.VersionTLS13 && !h.resumed || h.c.state.PeerCertificates == nil {
		return false
	}
	return step.Status != libssl.NeedVerify &&
		(step.Produced > 0 || step.Status == libssl.NeedCert || step.Status == libssl.Done)
}

// verifyConnection calls VerifyConnection and the functions of WithVerification, once in a
// handshake, with the state that is known by then.
func (h *handshake) verifyConnection() *refusal {
	if !h.verifiesConnection() || h.connectionVerified {
		return nil
	}
	h.connectionVerified = true
	facts := h.facts
	if !h.done {
		if err := h.withSSL(func(ssl *libssl.Conn) { facts = ssl.Facts() }); err != nil {
			return &refusal{err, alertInternalError}
		}
	}
	h.fillState(facts)
	if verify := h.c.context().config.VerifyConnection; verify != nil {
		if err := verify(h.c.state); err != nil {
			return &refusal{err, alertBadCertificate}
		}
	}
	for _, verify := range h.c.verify {
		if err := verify(h.c.state); err != nil {
			return &refusal{err, alertBadCertificate}
		}
	}
	return nil
}

// refusalAlert returns the alert for a refusal that libssl doesn't know of.
func (h *handshake) refusalAlert() (alert []byte) {
	_ = h.withSSL(func(ssl *libssl.Conn) { // the handshake fails in any case
		if !h.c.isClient || h.version < tls.VersionTLS13 {
			alert = record.PlaintextAlert(h.refused.alert)
			return
		}
		step := ssl.RefuseFlight(h.refused.alert, h.window.Mem)
		alert = h.window.Mem[:step.Produced]
	})
	return alert
}

// checkVerified refuses a handshake that is done without a decision that the configuration asks
// for. No such handshake is known.
func (h *handshake) checkVerified() error {
	c, config := h.c, h.c.context().config
	certs, chains := len(c.state.PeerCertificates) > 0, len(c.state.VerifiedChains) > 0
	ok := h.refused == nil && (!h.verifiesConnection() || h.connectionVerified)
	switch {
	case h.facts.PSK:
		if !ok || !h.psk.known || certs || h.resumed {
			return errNotVerified
		}
		return nil
	case h.needsPSK():
		return errNotVerified
	}
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
		return errNotVerified
	}
	return nil
}

var errNotVerified = errors.New("ossl: internal error: the handshake is done and the peer is not verified")
