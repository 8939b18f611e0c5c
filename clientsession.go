package ossl

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// Resumption, on a client. The configuration's ClientSessionCache keeps libssl's sessions: each is
// in the Extra field of a tls.SessionState, which survives Bytes and ParseSessionState. The other
// fields describe a made-up session whose certificate has expired. So a crypto/tls client that uses
// the same cache doesn't offer the session, and forgets it.

// sessionMark is the beginning of ossl's entry in SessionState.Extra.
const sessionMark = "ossl session 4\x00"

// errNoSession is the error for sessions that ossl has not made, or that were cut short.
var errNoSession = errors.New("ossl: no session")

// A clientSession is a session together with the facts that libssl's encoding lacks.
type clientSession struct {
	version, group uint16
	fips           bool // it was agreed in FIPS mode
	der            []byte
	ocsp, scts     []byte
	chain          []byte // as libssl.Conn.Message packs it
	roots          []byte // rootHashes of the chains that were verified; none if InsecureSkipVerify was set
	identity       *clientIdentity
	parsed         clientIdentity // for identity, without an allocation
}

// A clientIdentity is a client's answer to a server that has asked for a certificate. The server remembers it
// with the session, so the session must not be offered by a client that would answer otherwise.
type clientIdentity struct {
	leaf    []byte // of the chain that was sent, or empty
	request []byte // the CertificateRequest, if the answer depends on it
}

// The flags of an encoded session.
const (
	sessionFIPS  = 1 << iota
	sessionAsked // the session has an identity
)

func (s *clientSession) marshal() []byte {
	b := []byte(sessionMark)
	b = binary.BigEndian.AppendUint16(b, s.version)
	b = binary.BigEndian.AppendUint16(b, s.group)
	flags, identity := byte(0), clientIdentity{}
	if s.fips {
		flags |= sessionFIPS
	}
	if s.identity != nil {
		flags, identity = flags|sessionAsked, *s.identity
	}
	b = append(b, flags)
	for _, part := range [][]byte{s.der, s.ocsp, s.scts, s.chain, s.roots, identity.leaf, identity.request} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}

// parseClientSession reverses marshal. It doesn't trust b, since the cache may have stored it
// anywhere.
func parseClientSession(b []byte) (*clientSession, error) {
	b, ok := bytes.CutPrefix(b, []byte(sessionMark))
	if !ok || len(b) < 5 || b[4] > sessionFIPS|sessionAsked {
		return nil, errNoSession
	}
	s := &clientSession{version: binary.BigEndian.Uint16(b), group: binary.BigEndian.Uint16(b[2:]), fips: b[4]&sessionFIPS != 0}
	if b[4]&sessionAsked != 0 {
		s.identity = &s.parsed
	}
	b = b[5:]
	for _, part := range []*[]byte{&s.der, &s.ocsp, &s.scts, &s.chain, &s.roots, &s.parsed.leaf, &s.parsed.request} {
		if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, errNoSession
		}
		n := 4 + int(binary.BigEndian.Uint32(b))
		*part, b = b[4:n:n], b[n:]
	}
	if len(b) > 0 || len(s.der) == 0 || len(s.chain) == 0 || s.identity == nil && len(s.parsed.leaf)+len(s.parsed.request) > 0 {
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

// loadSession returns the session to offer, or nil. It verifies the server's chain in the session,
// by the configuration as it is now, because a resumed handshake doesn't.
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
		return nil // made by crypto/tls, or damaged
	}
	if s.fips != c.context().fips {
		return nil // FIPS mode uses the keys of its module alone, and other connections don't use them
	}
	if !h.sameIdentity(s) {
		return nil // it may be for another client that shares the cache
	}
	if s.version >= tls.VersionTLS13 {
		cache.Put(key, nil) // for one use: RFC 8446, appendix C.4
	}
	certs, chains, refused := c.decide(s.chain)
	if refused != nil || c.context().time().After(certs[0].NotAfter) {
		cache.Put(key, nil)
		return nil
	}
	if !c.context().config.InsecureSkipVerify && !s.verifiedBy(chains) {
		return nil
	}
	h.offered = &storedSession{certs: certs, chains: chains, ocsp: s.ocsp, scts: s.scts, group: s.group, identity: s.identity}
	return s.der
}

// verifiedBy reports whether one of the chains ends with a root that the server was verified by when the
// session was made. If none does, VerifyPeerCertificate, which isn't called when a session is resumed, has
// not seen any of them: crypto/tls doesn't offer such a session either.
func (s *clientSession) verifiedBy(chains [][]*x509.Certificate) bool {
	return slices.ContainsFunc(chains, func(chain []*x509.Certificate) bool {
		root := sha256.Sum256(chain[len(chain)-1].Raw)
		for known := range slices.Chunk(s.roots, sha256.Size) {
			if bytes.Equal(known, root[:]) {
				return true
			}
		}
		return false
	})
}

// rootHashes returns the hashes of the roots of chains.
func rootHashes(chains [][]*x509.Certificate) (hashes []byte) {
	for _, chain := range chains {
		if len(chain) > 0 { // callbacks had the list
			root := sha256.Sum256(chain[len(chain)-1].Raw)
			hashes = append(hashes, root[:]...)
		}
	}
	return hashes
}

// noteIdentity remembers the client's answer to a CertificateRequest, for the sessions to come.
func (h *handshake) noteIdentity(cert *tls.Certificate, request []byte) {
	if cache, _ := h.c.sessionCache(); cache == nil {
		return
	}
	h.c.identity = &clientIdentity{leaf: leafOf(cert)}
	if h.c.context().config.GetClientCertificate != nil || len(cert.Certificate) == 0 {
		h.c.identity.request = request
	}
}

// leafOf returns the leaf of a certificate, or nil.
func leafOf(cert *tls.Certificate) []byte {
	if len(cert.Certificate) == 0 {
		return nil
	}
	return cert.Certificate[0]
}

// sameIdentity reports whether the client would answer the server's request for a certificate as it did when the
// session was made.
func (h *handshake) sameIdentity(s *clientSession) bool {
	if s.identity == nil {
		return true // the server didn't ask
	}
	config := h.c.context().config
	if config.GetClientCertificate == nil && len(s.identity.leaf) > 0 {
		return slices.ContainsFunc(config.Certificates, func(cert tls.Certificate) bool {
			return bytes.Equal(leafOf(&cert), s.identity.leaf)
		})
	}
	if config.GetClientCertificate == nil && len(config.Certificates) == 0 {
		return true
	}
	info, offered, ok := stdtls.ParseCertificateRequest(s.version, s.identity.request)
	if !ok {
		return false
	}
	stdtls.SetRequestContext(info, h.callbackContext())
	cert, err := h.getClientCertificate(s.version, info, offered)
	return err == nil && bytes.Equal(leafOf(cert), s.identity.leaf)
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

// evictSession takes the session that a failed handshake has offered out of the cache: RFC 5077,
// section 3.2.
func (h *handshake) evictSession() {
	if cache, key := h.c.sessionCache(); cache != nil {
		cache.Put(key, nil)
	}
}

// keepSessions puts the sessions that a client was given into the cache.
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
	packed, roots := libssl.PackChain(chain), rootHashes(c.state.VerifiedChains)
	for _, s := range sessions {
		kept := clientSession{
			version: c.state.Version,
			group:   uint16(c.state.CurveID),
			fips:    c.context().fips,
			der:     withoutPeer(s.DER),
			ocsp:    c.state.OCSPResponse,
			scts:    scts,
			chain:   packed,
			roots:   roots,

			identity: c.identity,
		}
		state := *template
		state.Extra = [][]byte{kept.marshal()}
		if stored, err := tls.NewResumptionState(s.ID, &state); err == nil {
			cache.Put(key, stored)
		}
	}
}

// withoutPeer drops the peer's certificate from a session in libssl's encoding, SSL_SESSION_ASN1.
// Go has the whole chain. libssl would decode the certificate each time and not use it; on OpenSSL
// 3.0 that takes as long as a key exchange.
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
