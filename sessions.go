package ossl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
	"github.com/ossl-go/ossl/internal/ticketsecret"
	"github.com/ossl-go/ossl/session"
)

// Resumption, on a server. libssl makes and reads sessions and tickets. This package decides which
// sessions may be resumed:
//
//   - internal/libssl/session.c binds each session to the Context's policy, the identity in the
//     server's certificate, and the name and the protocol that it was made for;
//   - if the server asks for certificates, the client's chain is verified again, by the
//     configuration as it is now;
//   - VerifyConnection is called as in a full handshake.
//
// If a session must not be resumed, the handshake is a full one. No check is left to the client or
// to the cache.

// A storedSession is the part of a session that libssl doesn't keep, and that a resumed connection
// needs.
type storedSession struct {
	certs      []*x509.Certificate
	chains     [][]*x509.Certificate
	ocsp, scts []byte          // set on clients
	group      uint16          // set on clients, for TLS 1.2
	identity   *clientIdentity // set on clients
}

// cacheTimeout bounds each call of a session cache.
const cacheTimeout = 250 * time.Millisecond

// sessionPolicy returns a hash of the requirements that a configuration has for clients. A session
// made under another policy is not resumed. names are the subjects of the trusted authorities.
func sessionPolicy(config *tls.Config, fips bool, names [][]byte) [32]byte {
	h := sha256.New()
	h.Write([]byte("ossl session policy 1"))
	h.Write([]byte{byte(config.ClientAuth)})
	for _, name := range names {
		sum := sha256.Sum256(name)
		h.Write(sum[:])
	}
	if fips {
		h.Write([]byte("FIPS"))
	}
	if config.VerifyPeerCertificate != nil { // which isn't called for a resumed session
		h.Write([]byte("VerifyPeerCertificate"))
	}
	return [32]byte(h.Sum(nil))
}

// sessionIdentity returns a hash of the identity in a server's certificate. A session is resumed
// only if the certificate for this ClientHello has the same identity. The identity is the
// certificate's names, since a client checks these, while the key and the dates change with each
// renewal. A certificate without names is identified by its subject or, if that is empty, by its
// key.
func sessionIdentity(leaf *x509.Certificate) [32]byte {
	kind, parts := "names", alternativeNames(leaf)
	if len(parts) == 0 {
		kind, parts = "subject", [][]byte{leaf.RawSubject}
		if len(leaf.Subject.Names) == 0 {
			kind, parts = "key", [][]byte{leaf.RawSubjectPublicKeyInfo}
		}
	}
	h := sha256.New()
	h.Write([]byte("ossl session identity 1 " + kind))
	for _, part := range parts {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return [32]byte(h.Sum(nil))
}

// alternativeNames returns a certificate's subject alternative names of all kinds, even those that
// crypto/x509 ignores. They are encoded, sorted and without duplicates, and DNS names are in lower
// case.
func alternativeNames(leaf *x509.Certificate) (names [][]byte) {
	const dnsName = 2 // RFC 5280, section 4.2.1.6
	for _, e := range leaf.Extensions {
		if !e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) {
			continue
		}
		var list asn1.RawValue
		_, err := asn1.Unmarshal(e.Value, &list) // x509.ParseCertificate has accepted it
		for rest := list.Bytes; err == nil && len(rest) > 0; {
			var name asn1.RawValue
			if rest, err = asn1.Unmarshal(rest, &name); err != nil {
				break
			}
			if name.Class == asn1.ClassContextSpecific && name.Tag == dnsName {
				name.FullBytes = append([]byte{dnsName}, bytes.ToLower(name.Bytes)...)
			}
			names = append(names, name.FullBytes)
		}
		if err != nil {
			names = append(names, e.Value)
		}
	}
	slices.SortFunc(names, bytes.Compare)
	return slices.CompactFunc(names, bytes.Equal)
}

// findSession looks for the session that a ClientHello asks for, if it asks for one.
func (h *handshake) findSession() error {
	var id []byte
	var singleUse bool
	err := h.withSSL(func(ssl *libssl.Conn) {
		id, singleUse = bytes.Clone(ssl.Lookup()), ssl.SingleUse()
	})
	if id == nil || err != nil {
		return err
	}
	if singleUse { // it is a TLS 1.3 session
		id = ticketID(id)
	}
	found, err := h.cached(id, singleUse)
	if err != nil || len(found) == 0 {
		return nil
	}
	if !singleUse {
		h.lookedUp = id
	}
	h.inCache = true
	return h.withSSL(func(ssl *libssl.Conn) { ssl.OfferSession(found) })
}

// cached asks the cache for a session. The call's context is cancelled even if the cache panics.
func (h *handshake) cached(id []byte, take bool) ([]byte, error) {
	ctx := newCacheContext(h.ctx)
	defer ctx.end()
	start := time.Now()
	found, err := h.c.context().opts.cache.Get(ctx, id, take)
	h.c.watch.sessionCall("get", len(found) > 0, start, err)
	return found, err
}

// ticketID returns the ID in the cache of the TLS 1.3 session whose ticket is id. A session that a
// TLS 1.3 hello names is taken out of the cache before the client has proven anything. So its ID
// must differ from the ID of every TLS 1.2 session, which anyone on the network can see.
func ticketID(id []byte) []byte {
	sum := sha256.Sum256(append([]byte("ossl ticket of TLS 1.3\x00"), id...))
	return sum[:]
}

// cacheSessions puts the sessions that a server has made into the cache.
func (h *handshake) cacheSessions() {
	opts := h.c.context().opts
	for _, s := range h.sessions {
		if h.version >= tls.VersionTLS13 {
			s.ID = ticketID(s.ID)
		}
		start := time.Now()
		err := cacheSession(opts.cache, s, start.Add(opts.lifetime))
		h.c.watch.sessionCall("put", false, start, err)
		if err == nil {
			h.c.in.cachedID = s.ID
		}
	}
	h.sessions = nil
}

// cacheSession puts a session into a cache.
func cacheSession(cache session.Cache, s libssl.Session, expires time.Time) error {
	ctx := newCacheContext(context.Background())
	defer ctx.end()
	return cache.Put(ctx, s.ID, s.DER, expires)
}

// forgetSession takes the connection's session out of the cache if err is a fatal alert: RFC 5246,
// section 7.2.2. The reader is locked.
func (c *Conn) forgetSession(err error) {
	if c.in.cachedID == nil || c.isClient {
		return
	}
	var alert tls.AlertError
	if !errors.As(err, &alert) {
		return
	}
	id := c.in.cachedID
	c.in.cachedID = nil
	ctx := newCacheContext(context.Background())
	defer ctx.end()
	start := time.Now()
	c.watch.sessionCall("remove", false, start, c.context().opts.cache.Remove(ctx, id))
}

// checkForResumption decides, on a server that asks for certificates, whether to resume a session.
// It verifies the client's chain in that session as if the client had sent it now, as crypto/tls's
// method of that name does.
func (h *handshake) checkForResumption() error {
	err := h.question(func(chain []byte) { h.offered = h.acceptSession(chain) })
	if err != nil {
		return err
	}
	return h.withSSL(func(ssl *libssl.Conn) { ssl.SetResume(h.offered != nil) })
}

// acceptSession returns the part of a session that libssl doesn't keep, or nil if the session must
// not be resumed.
func (h *handshake) acceptSession(chain []byte) *storedSession {
	ctx := h.c.context()
	if len(chain) == 0 {
		if requiresCertificate(ctx.config.ClientAuth) {
			return nil
		}
		return &storedSession{}
	}
	certs, chains, refused := h.c.decide(chain)
	if refused != nil || ctx.time().After(certs[0].NotAfter) {
		return nil
	}
	return &storedSession{certs: certs, chains: chains}
}

// resume takes over the peer's certificates from the session, once client and server agree to
// resume it.
func (h *handshake) resume() {
	h.resumed = true
	h.c.state.PeerCertificates, h.c.state.VerifiedChains = h.offered.certs, h.offered.chains
	h.c.identity = h.offered.identity
}

// ticketKeys are the keys with which a Context seals and opens tickets.
type ticketKeys struct {
	ring *session.Ring // nil if there are no tickets
	mu   sync.Mutex    // one change at a time
	seen atomic.Uint64 // the ring's generation that libssl has
}

// makeRing returns the Context's ring of ticket keys, or nil if there are no tickets.
func (c *Context) makeRing(parent *Context) (*session.Ring, error) {
	set, ok := stdtls.TicketKeys(c.config)
	if !ok {
		return nil, &ConfigError{Field: "SetSessionTicketKeys", Reason: "ossl can't read the ticket keys of this version of Go"}
	}
	if parent == nil && c.opts.refused == nil { // the settings of an unchanged program are for all of its servers
		if err := c.checkSessionOptions(len(set) > 0); err != nil {
			return nil, err
		}
	}
	if c.config.SessionTicketsDisabled || c.serveErr != nil || c.opts.psk.serversNeed() {
		return nil, nil
	}
	if len(set) > 0 && c.fips {
		return nil, &ConfigError{Field: "SessionTicketKey", Reason: "ticket keys would be derived outside of the FIPS module; " +
			"use WithTicketKeys"}
	}
	if len(set) > 0 && c.opts.ring != nil && c.opts.refused != nil {
		return nil, &ConfigError{Field: "WithTicketKeys", Reason: ownTicketKeys}
	}
	if c.host != nil && c.host.NoSessionTickets {
		if c.opts.ring != nil && parent == nil {
			return nil, configError(c.host.Refuse(libssl.TopicOptions, "WithTicketKeys", "it allows no tickets"))
		}
		if len(set) > 0 {
			return nil, configError(c.host.Refuse(libssl.TopicOptions, "SessionTicketKey", "it allows no tickets"))
		}
		return nil, nil
	}
	switch {
	case len(set) > 0:
		return ringOf(set)
	case c.opts.ring != nil:
		return c.opts.ring, nil
	case parent != nil && parent.ring != nil && (parent.fips || !c.fips): // FIPS mode needs keys of the module
		return parent.ring, nil
	case c.fips:
		return fipsRing()
	}
	return session.NewRotatingRing(0, 0), nil
}

const ownTicketKeys = "the configuration has ticket keys of its own"

// checkSessionOptions returns an error for an option on sessions that the configuration contradicts.
// keysSet means that the configuration has ticket keys. It is not called for a configuration that
// GetConfigForClient returns, which may contradict the options.
func (c *Context) checkSessionOptions(keysSet bool) error {
	const nothing, disabled = "there is no certificate to serve with", "SessionTicketsDisabled is set"
	o, noTickets, cantServe := c.opts, c.config.SessionTicketsDisabled, c.serveErr != nil
	for _, rule := range []struct {
		broken         bool
		option, reason string
	}{
		{cantServe && o.cache != nil, "WithSessionCache", nothing},
		{cantServe && o.ring != nil, "WithTicketKeys", nothing},
		{o.tickets13 && o.cache == nil, "WithTLS13Tickets", "there is no session cache: use WithSessionCache"},
		{o.tickets13 && noTickets, "WithTLS13Tickets", disabled},
		{noTickets && o.ring != nil, "WithTicketKeys", disabled},
		{keysSet && o.ring != nil, "WithTicketKeys", ownTicketKeys},
	} {
		if rule.broken {
			return &ConfigError{Field: rule.option, Reason: rule.reason}
		}
	}
	return nil
}

// ringOf returns a ring of a configuration's ticket keys, derived as crypto/tls does.
func ringOf(set [][32]byte) (*session.Ring, error) {
	keys := make([]session.TicketKey, len(set))
	for i, material := range set {
		if material == ticketsecret.Hash([32]byte{}) {
			return nil, &ConfigError{Field: "SetSessionTicketKeys", Reason: fmt.Sprintf("key %d is all zeros: it was not set", i)}
		}
		keys[i].Name, keys[i].MAC, keys[i].Cipher = ticketsecret.Derive(material)
	}
	ring, err := session.NewRing(keys...)
	if err != nil {
		return nil, &ConfigError{Field: "SessionTicketKey", Reason: "can't be used", Err: err}
	}
	return ring, nil
}

// refreshTicketKeys gives the ring's keys to libssl if they have changed.
func (c *Context) refreshTicketKeys() {
	if c.ring == nil || c.ring.Generation() == c.seen.Load() {
		return
	}
	c.ticketKeys.mu.Lock()
	defer c.ticketKeys.mu.Unlock()
	keys, generation := c.ring.Snapshot()
	if generation == c.seen.Load() {
		return
	}
	list := make([]libssl.TicketKey, len(keys))
	for i := range list {
		list[i] = libssl.TicketKey{Name: keys[i].Name, Cipher: keys[i].Cipher, MAC: keys[i].MAC}
	}
	if c.ssl.SetTicketKeys(list) {
		c.seen.Store(generation)
	}
}
