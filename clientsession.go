package ossl

import (
	"bytes"
	"crypto/tls"
	"encoding/asn1"
	"encoding/binary"
	"errors"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// Resumption, the client's side. A session is libssl's, and is kept in the configuration's ClientSessionCache: a
// tls.ClientSessionState can carry other things beside crypto/tls's own (SessionState.Extra), through Bytes and ParseSessionState
// too. What it is of crypto/tls's is a session of a handshake that nobody took part in, with a certificate that has expired: a
// crypto/tls client that is given the same cache finds that, and forgets it.

// sessionMark begins what ossl puts into SessionState.Extra.
const sessionMark = "ossl session 2\x00"

// errNoSession is for sessions that are not ossl's, or cut short.
var errNoSession = errors.New("ossl: no session")

// clientSession is a session with what libssl's encoding lacks.
type clientSession struct {
	version, group uint16
	fips           bool // it was agreed in FIPS mode
	der            []byte
	ocsp, scts     []byte
	chain          []byte // as libssl.Conn.Message packs it
}

func (s *clientSession) marshal() []byte {
	b := []byte(sessionMark)
	b = binary.BigEndian.AppendUint16(b, s.version)
	b = binary.BigEndian.AppendUint16(b, s.group)
	b = append(b, 0)
	if s.fips {
		b[len(b)-1] = 1
	}
	for _, part := range [][]byte{s.der, s.ocsp, s.scts, s.chain} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}

// parseClientSession reads what marshal wrote. The cache may have had it anywhere.
func parseClientSession(b []byte) (*clientSession, error) {
	b, ok := bytes.CutPrefix(b, []byte(sessionMark))
	if !ok || len(b) < 5 || b[4] > 1 {
		return nil, errNoSession
	}
	s := &clientSession{version: binary.BigEndian.Uint16(b), group: binary.BigEndian.Uint16(b[2:]), fips: b[4] == 1}
	b = b[5:]
	for _, part := range []*[]byte{&s.der, &s.ocsp, &s.scts, &s.chain} {
		if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, errNoSession
		}
		n := 4 + int(binary.BigEndian.Uint32(b))
		*part, b = b[4:n:n], b[n:]
	}
	if len(b) > 0 || len(s.der) == 0 || len(s.chain) == 0 {
		return nil, errNoSession
	}
	return s, nil
}

// sessionCache returns the configuration's cache and this connection's key in it, or nil.
func (c *Conn) sessionCache() (tls.ClientSessionCache, string) {
	config := c.context().config
	if config.ClientSessionCache == nil || config.SessionTicketsDisabled {
		return nil, ""
	}
	key := c.serverName // crypto/tls's clientSessionCacheKey
	if key == "" {
		key = c.conn.RemoteAddr().String()
	}
	return config.ClientSessionCache, key
}

// loadSession returns the session to offer, or nil. What a full handshake would verify of the server is verified here, by the
// configuration as it is now: nothing is, once the server agrees.
func (h *handshake) loadSession() []byte {
	c := h.c
	cache, key := c.sessionCache()
	if cache == nil {
		return nil
	}
	stored, ok := cache.Get(key)
	if !ok || stored == nil {
		return nil
	}
	s, err := sessionOf(stored)
	if err != nil {
		return nil // crypto/tls's, or nobody's
	}
	if s.fips != c.context().fips {
		return nil // its keys are of a module that this connection must not, or need not, have to do with
	}
	if s.version >= tls.VersionTLS13 {
		cache.Put(key, nil) // for one use: RFC 8446, appendix C.4
	}
	certs, chains, refused := c.decide(s.chain)
	if refused != nil || c.context().time().After(certs[0].NotAfter) {
		cache.Put(key, nil)
		return nil
	}
	h.offered = &storedSession{certs: certs, chains: chains, ocsp: s.ocsp, scts: s.scts, group: s.group}
	return s.der
}

func sessionOf(stored *tls.ClientSessionState) (*clientSession, error) {
	_, state, err := stored.ResumptionState()
	if err != nil || state == nil {
		return nil, errNoSession
	}
	for _, extra := range state.Extra {
		if s, err := parseClientSession(extra); err == nil {
			return s, nil
		}
	}
	return nil, errNoSession
}

// evictSession forgets the session that a failed handshake has offered.
func (c *Conn) evictSession() {
	if cache, key := c.sessionCache(); cache != nil {
		cache.Put(key, nil)
	}
}

// keepSessions puts what a client was given into the cache.
func (c *Conn) keepSessions(sessions []libssl.Session) {
	if len(sessions) == 0 || !c.isClient {
		return
	}
	cache, key := c.sessionCache()
	if cache == nil {
		return
	}
	chain := make([][]byte, len(c.state.PeerCertificates))
	for i, cert := range c.state.PeerCertificates {
		chain[i] = cert.Raw
	}
	scts, _ := sctList(c.state.SignedCertificateTimestamps)
	template, err := stdtls.SessionTemplate()
	if err != nil {
		return
	}
	packed := libssl.PackChain(chain)
	for _, s := range sessions {
		kept := clientSession{
			version: c.state.Version,
			group:   uint16(c.state.CurveID),
			fips:    c.context().fips,
			der:     withoutPeer(s.DER),
			ocsp:    c.state.OCSPResponse,
			scts:    scts,
			chain:   packed,
		}
		state := *template
		state.Extra = [][]byte{kept.marshal()}
		if stored, err := tls.NewResumptionState(s.ID, &state); err == nil {
			cache.Put(key, stored)
		}
	}
}

// withoutPeer drops the peer's certificate from a session in libssl's encoding, SSL_SESSION_ASN1: Go has the whole chain, and
// libssl would decode it each time, for nothing: on 3.0 that takes as long as a key exchange.
func withoutPeer(der []byte) []byte {
	const peer = 3 // [3] EXPLICIT Certificate
	var session, kept asn1.RawValue
	if rest, err := asn1.Unmarshal(der, &session); err != nil || len(rest) > 0 {
		return der
	}
	for rest := session.Bytes; len(rest) > 0; {
		var field asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &field); err != nil {
			return der
		}
		if field.Class != asn1.ClassContextSpecific || field.Tag != peer {
			kept.Bytes = append(kept.Bytes, field.FullBytes...)
		}
	}
	kept.Tag, kept.IsCompound = asn1.TagSequence, true
	short, err := asn1.Marshal(kept)
	if err != nil {
		return der
	}
	return short
}
