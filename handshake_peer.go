package ossl

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/ossl-go/ossl/internal/libssl"
)

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

// A refusal is a verification's failure: the error for the caller and the alert that crypto/tls sends for it.
type refusal struct {
	err   error
	alert uint8
}

// verdict is what makes libssl send the refusal's alert. Where no X509_V_ERR leads to it, it is the nearest; before keys are in
// use the alert is put right afterwards (rewriteAlert).
func (r *refusal) verdict() libssl.Verdict {
	switch r.alert {
	case alertUnknownCA:
		return libssl.VerdictUnknownCA
	case alertCertificateExpired:
		return libssl.VerdictExpired
	case alertUnsupportedCertificate:
		return libssl.VerdictUnsupported
	case alertInternalError:
		return libssl.VerdictInternal
	}
	return libssl.VerdictBad
}

// verifyChain decides on the chain that the peer sent, packed; the client's is empty if the server's wish for one was not met.
// It is crypto/tls's verifyServerCertificate and processCertsFromClient, less VerifyConnection.
func (h *handshake) verifyChain(packed []byte) *refusal {
	c := h.c
	config := c.context().config
	h.chainDecided = true
	if len(packed) == 0 {
		if c.isClient {
			return &refusal{errors.New("tls: received empty certificates message"), alertDecodeError}
		}
		if config.ClientAuth == tls.RequireAnyClientCert || config.ClientAuth == tls.RequireAndVerifyClientCert {
			alert := uint8(alertCertificateRequired)
			if h.version < tls.VersionTLS13 {
				alert = alertHandshakeFailure
			}
			return &refusal{errors.New("tls: client didn't provide a certificate"), alert}
		}
		return c.userVerify(nil)
	}

	certs, chains, r := c.decide(packed)
	if r != nil {
		return r
	}
	c.state.PeerCertificates, c.state.VerifiedChains = certs, chains
	return c.userVerify(certs)
}

// userVerify asks the configuration's VerifyPeerCertificate.
func (c *Conn) userVerify(certs []*x509.Certificate) *refusal {
	verify := c.context().config.VerifyPeerCertificate
	if verify == nil {
		return nil
	}
	raw := make([][]byte, len(certs))
	for i, cert := range certs {
		raw[i] = bytes.Clone(cert.Raw) // others have the certificate too
	}
	if err := verify(raw, c.state.VerifiedChains); err != nil {
		return &refusal{err, alertBadCertificate}
	}
	return nil
}

// verifiesConnection reports whether someone is to be asked about the connection as a whole.
func (c *Conn) verifiesConnection() bool {
	return c.context().config.VerifyConnection != nil || len(c.verify) > 0
}

// verifyConnection asks the configuration's VerifyConnection, and the connection's own, once a handshake, with what is known by
// then.
func (h *handshake) verifyConnection() *refusal {
	c := h.c
	if !c.verifiesConnection() || h.connectionVerified {
		return nil
	}
	h.connectionVerified = true
	facts := h.facts
	if !h.done {
		ssl, err := c.engine.lock()
		if err != nil {
			return &refusal{err, alertInternalError}
		}
		facts = ssl.Facts()
		c.engine.unlock()
	}
	c.fillState(facts)
	if verify := c.context().config.VerifyConnection; verify != nil {
		if err := verify(c.state); err != nil {
			return &refusal{err, alertBadCertificate}
		}
	}
	for _, verify := range c.verify {
		if err := verify(c.state); err != nil {
			return &refusal{err, alertBadCertificate}
		}
	}
	return nil
}
