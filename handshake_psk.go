package ossl

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"slices"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/wire"
)

// A handshakePSK is the state of a handshake with a pre-shared key.
type handshakePSK struct {
	offer    []byte // of a client: packed for libssl until the SSL is made
	identity []byte // of the key that libssl has
	known    bool   // that key is real, not a random one for an unknown identity
	agreed   bool   // client and server agreed to use it
	fault    error  // the reason why the client can't have it, or nil
}

// maxIdentities is the number of a client's identities that are looked up. A ClientHello has room for
// thousands.
const maxIdentities = 5

// The modes of pre-shared keys in TLS 1.3: RFC 8446, section 4.2.9.
const (
	modePSK    = 0
	modePSKDHE = 1
)

// offerPSK finds the key that a client offers.
func (h *handshake) offerPSK() error {
	ctx := h.c.context()
	o := &ctx.opts.psk
	if o.get == nil {
		return nil
	}
	psk, err := o.get(h.callbackContext(), h.c.serverName)
	switch {
	case err != nil:
		return err
	case psk == nil && o.orCertificate:
		return nil
	case psk == nil:
		return fmt.Errorf("ossl: WithPSK: %w for server %q", ErrNoPSK, h.c.serverName)
	}
	if err := psk.checkForClient(ctx); err != nil {
		return err
	}
	h.psk.identity, h.psk.known = bytes.Clone(psk.Identity), true
	h.psk.offer = libssl.PackPSK(psk.Identity, psk.Key, psk.sha384())
	return nil
}

// forgetPSKOffer wipes the packed key.
func (h *handshake) forgetPSKOffer() {
	clear(h.psk.offer)
	h.psk.offer = nil
}

// A pskOffer is a ClientHello as far as it concerns pre-shared keys.
type pskOffer struct {
	tls13      bool // TLS 1.3 will be chosen
	hello      libssl.ClientHello
	identities []offeredPSK // in TLS 1.3
}

// An offeredPSK is a client's identity, with the hash of its key by the client's reckoning. A key with another
// hash is no use: libssl's alert for a binder of the wrong length would tell that the identity is known.
type offeredPSK struct {
	identity       []byte
	sha256, sha384 bool // one, or none if the binder's length is not that of a hash
}

// parsePSKOffer returns the first identities in the body of a pre_shared_key extension (RFC 8446, section 4.2.11),
// each once, since libssl takes the first of those that are equal. ok is false if the extension is malformed.
// libssl doesn't examine what follows the identity that it uses.
func parsePSKOffer(body []byte) (offered []offeredPSK, ok bool) {
	r := wire.Reader{Rest: body}
	identities, binders := r.List(2), r.List(2)
	for n := 0; len(identities.Rest) > 0; n++ {
		identity := identities.Vector(2)
		identities.Bytes(4) // obfuscated_ticket_age
		binder := binders.Vector(1)
		if identities.Failed || binders.Failed || len(identity) == 0 {
			return nil, false
		}
		if n < maxIdentities && !slices.ContainsFunc(offered, func(o offeredPSK) bool { return bytes.Equal(o.identity, identity) }) {
			offered = append(offered, offeredPSK{bytes.Clone(identity), len(binder) == 32, len(binder) == 48})
		}
	}
	return offered, r.Done() && binders.Done()
}

// findPSK decides, on a server, whether a client uses a pre-shared key. If so, or if the handshake fails, decided
// is true.
func (h *handshake) findPSK() (decided bool, err error) {
	ctx := h.c.context()
	if ctx.opts.psk.find == nil {
		return false, nil
	}
	var offer pskOffer
	wellFormed := true
	if err := h.withSSL(func(ssl *libssl.Conn) {
		var body []byte
		if offer.tls13, body = ssl.PSKOffer(); body != nil {
			offer.identities, wellFormed = parsePSKOffer(body)
		}
		offer.hello, _ = libssl.ParseClientHello(ssl.Hellos().Client)
	}); err != nil {
		return true, err
	}
	if !wellFormed {
		h.sendAlert(alertDecodeError)
		return true, noPSK("the client's offer is malformed")
	}
	if offer.tls13 {
		return h.findPSK13(&offer)
	}
	offers := func(id uint16) bool { return slices.Contains(offer.hello.CipherSuites, id) }
	switch {
	case slices.ContainsFunc(ctx.psk.suites12, offers):
		return true, h.usePSK(nil, nil, false) // the client's identity comes later: lookUpPSK
	case ctx.opts.psk.serversNeed() && len(ctx.psk.suites12) > 0: // otherwise libssl refuses the version
		return true, h.refusePSK("the client offers no cipher suite with one that the server has")
	}
	return false, nil
}

// findPSK13 is findPSK in TLS 1.3. What it tells the client doesn't depend on which identities are known, if the
// server has no certificates.
func (h *handshake) findPSK13(offer *pskOffer) (decided bool, err error) {
	ctx := h.c.context()
	o, need := &ctx.opts.psk, ctx.opts.psk.serversNeed()
	offers := func(id uint16) bool { return slices.Contains(offer.hello.CipherSuites, id) }
	sha256, sha384 := ctx.psk.has(false, offers), ctx.psk.has(true, offers)
	usable := func(o offeredPSK) bool { return o.sha256 && sha256 || o.sha384 && sha384 }
	mode := slices.Contains(offer.hello.PSKModes, modePSKDHE) || o.withoutDHE && slices.Contains(offer.hello.PSKModes, modePSK)
	identities := offer.identities
	if need { // otherwise a known identity that is of no use must not lead to a certificate
		identities = slices.DeleteFunc(identities, func(o offeredPSK) bool { return !usable(o) })
	}
	switch {
	case !need:
	case len(offer.identities) == 0:
		return true, h.refusePSK("the client offers none")
	case !mode:
		return true, h.refusePSK("the client offers no key exchange that the server has")
	case len(identities) == 0:
		return true, h.refusePSK("the client offers no cipher suite that the server has")
	}
	var found *PSK
	var identity []byte
	for _, offered := range identities { // all of them, so that the time doesn't tell which are known
		psk, err := h.lookUp(offered.identity)
		switch fits := psk != nil && psk.sha384() == offered.sha384 && usable(offered); {
		case err != nil:
			h.sendAlert(alertInternalError)
			return true, err
		case psk == nil || found != nil:
		case fits:
			found, identity = psk, offered.identity
		default:
			h.psk.fault = noPSK(fmt.Sprintf("the client doesn't offer the key with its hash %v", psk.hash()))
			if !need {
				h.sendAlert(alertHandshakeFailure)
				return true, h.psk.fault
			}
		}
	}
	switch {
	case found != nil && !mode:
		return true, h.refusePSK("the client offers no key exchange that the server has")
	case found != nil:
		h.psk.known, h.psk.fault = true, nil
		return true, h.usePSK(identity, found.Key, found.sha384())
	case need:
		return true, h.useDecoy(identities[0].identity, identities[0].sha384)
	}
	return false, nil // they may be tickets
}

// lookUp asks for the key with an identity, which is nil if it is unknown.
func (h *handshake) lookUp(identity []byte) (*PSK, error) {
	psk, err := h.c.context().opts.psk.find(h.callbackContext(), bytes.Clone(identity))
	if err == nil && psk != nil {
		err = psk.check("WithPSKLookup")
	}
	if err != nil {
		return nil, err
	}
	return psk, nil
}

// lookUpPSK finds the key of a TLS 1.2 client's identity, unless the handshake has failed.
func (h *handshake) lookUpPSK() error {
	if err := h.ended(); err != nil {
		return err
	}
	var identity []byte
	if err := h.withSSL(func(ssl *libssl.Conn) { identity = bytes.Clone(ssl.Message()) }); err != nil {
		return err
	}
	psk, err := h.lookUp(identity)
	switch {
	case err != nil:
		h.refused = &refusal{err, alertInternalError} // without a key, the next step is fatal
		return nil
	case psk == nil:
		return h.useDecoy(identity, false)
	}
	h.psk.known = true
	return h.usePSK(identity, psk.Key, false)
}

// useDecoy gives libssl a random key for an unknown identity, so that the client can't tell it from a wrong key:
// RFC 8446, appendix E.6, and RFC 4279, section 2.
func (h *handshake) useDecoy(identity []byte, sha384 bool) error {
	var key [32]byte
	defer clear(key[:])
	rand.Read(key[:])
	if h.psk.fault == nil {
		h.psk.fault = noPSK("the client's identity is unknown")
	}
	return h.usePSK(identity, key[:], sha384)
}

// usePSK gives libssl a key, or none if TLS 1.2's comes later.
func (h *handshake) usePSK(identity, key []byte, sha384 bool) error {
	packed := libssl.PackPSK(identity, key, sha384)
	defer clear(packed)
	h.psk.identity = identity
	var failure error
	if err := h.withSSL(func(ssl *libssl.Conn) { failure = ssl.UsePSK(packed) }); err != nil {
		return err
	}
	if failure != nil {
		h.sendAlert(alertInternalError)
		return libraryError(failure)
	}
	return nil
}

func noPSK(reason string) error { return fmt.Errorf("ossl: %w: %s", ErrNoPSK, reason) }

// refusePSK refuses a ClientHello.
func (h *handshake) refusePSK(reason string) error {
	h.sendAlert(alertHandshakeFailure)
	return noPSK(reason)
}

// needsPSK reports whether the configuration accepts nothing but a pre-shared key from the peer.
func (h *handshake) needsPSK() bool {
	o := &h.c.context().opts.psk
	return h.c.isClient && o.clientsNeed() || !h.c.isClient && o.serversNeed()
}

// checkPSK refuses a handshake in which libssl goes on with a certificate although it has the client's key, before
// anything of it is sent: if the client's second hello lacks the key, or if memory was short when OpenSSL 3.0 compared
// the names of the hashes.
func (h *handshake) checkPSK() *refusal {
	if h.c.isClient || !h.negotiated || h.version < tls.VersionTLS13 || h.psk.identity == nil || h.psk.agreed {
		return nil
	}
	return &refusal{noPSK("it was not used"), alertHandshakeFailure}
}

// timeToVerifyPSK is timeToVerify for a pre-shared key: once the peer has proven that it has the key, and
// before this side's last flight. The exception is a TLS 1.2 client, whose last flight comes before the
// server's proof.
func (h *handshake) timeToVerifyPSK(step libssl.Step) bool {
	if h.c.isClient == (h.version >= tls.VersionTLS13) {
		return step.Status == libssl.Done
	}
	return step.Produced > 0 || step.Status == libssl.Done
}
