package ossl

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
)

// ErrNoPSK is wrapped by the error of a handshake in which the peers could not use a pre-shared key, although
// [WithPSK] or [WithPSKLookup] demands one: the server didn't accept the client's, or the client didn't offer
// one that the server knows.
var ErrNoPSK = errors.New("no pre-shared key")

// A PSK is an external pre-shared key: a secret that client and server have agreed on before (RFC 8446,
// section 2.2, and RFC 4279). It authenticates both in place of certificates.
type PSK struct {
	// Identity names the key. Clients send it in the clear. A server's lookup need not set it.
	Identity []byte

	// Key is the secret: 16 to 256 bytes from a random source. Anyone who has seen a handshake can test
	// guesses of a password. The connection has a copy of its own, which it wipes after the handshake.
	Key []byte

	// Hash is the hash that the key is for in TLS 1.3: [crypto.SHA256], which is also meant by 0, or
	// [crypto.SHA384]. A connection with the key has only cipher suites with this hash. TLS 1.2 has no such
	// bond.
	Hash crypto.Hash
}

// pskOptions are the options on pre-shared keys.
type pskOptions struct {
	get           func(ctx context.Context, serverName string) (*PSK, error)
	find          func(ctx context.Context, identity []byte) (*PSK, error)
	orCertificate bool
	withoutDHE    bool
}

// WithPSK makes clients use pre-shared keys in place of certificates. get returns the key for the server of
// this name, or nil if there is none. Its context is that of the handshake, which fails if get returns nil or
// if the server doesn't use the key, unless [WithPSKOrCertificate] is given too.
//
// In TLS 1.3 each connection has a new (EC)DHE key exchange as well, so the key reveals nothing of earlier
// connections; in TLS 1.2, the suites are those with ECDHE_PSK. [WithInsecurePSKWithoutDHE] allows others.
//
// Such a connection has no certificates: PeerCertificates and VerifiedChains of its [tls.ConnectionState] are
// nil, and VerifyHostname returns an error. DidResume is false. VerifyConnection and [WithVerification] are
// called, and [Conn.PSKIdentity] returns the key's identity. The connection makes no session and sends no early
// data. Its handshake costs as much as a resumption. The option is refused in FIPS mode.
func WithPSK(get func(ctx context.Context, serverName string) (*PSK, error)) Option {
	return func(o *options) error {
		if get == nil {
			return &ConfigError{Field: "WithPSK", Reason: "nil"}
		}
		o.psk.get = get
		return nil
	}
}

// WithPSKLookup makes servers use pre-shared keys in place of certificates, as [WithPSK] describes. find returns
// the key with an identity, or nil if it is unknown. The identity is the peer's text: the client has not proven
// yet that it has the key. find is called for all identities of a client, up to five, for several connections at
// once, and with a TLS 1.3 ticket if [WithPSKOrCertificate] is given. It should take as long for an unknown
// identity as for a known one.
//
// A client without a key is refused, unless WithPSKOrCertificate is given. A client with an unknown identity gets
// the same answer, at the same cost, as one with a wrong key: the server goes on with a random key. The
// server's error wraps [ErrNoPSK].
func WithPSKLookup(find func(ctx context.Context, identity []byte) (*PSK, error)) Option {
	return func(o *options) error {
		if find == nil {
			return &ConfigError{Field: "WithPSKLookup", Reason: "nil"}
		}
		o.psk.find = find
		return nil
	}
}

// WithPSKOrCertificate makes clients and servers with pre-shared keys accept certificates too. A client to whose
// server there is no key, or whose server chooses its certificate, verifies that; on servers, ClientAuth decides
// which certificates clients need. [Conn.PSKIdentity] reports which connections have a key.
//
// A client that names a known identity gets that key or no connection: it never falls back to a certificate
// because of a cipher suite or a wrong key. So anyone can find out which identities are known (RFC 8446,
// appendix E.6). A server that must hide that has no certificates. In TLS 1.2, where the client names its
// identity later, it has chosen a key by offering a cipher suite with one that the server has.
func WithPSKOrCertificate() Option {
	return func(o *options) error {
		o.psk.orCertificate = true
		return nil
	}
}

// WithInsecurePSKWithoutDHE also allows key exchanges that consist of the pre-shared key alone, for devices that
// can't do more: the mode psk_ke of TLS 1.3, and the TLS_PSK suites of TLS 1.2. Someone who learns the key can
// decrypt all connections that were recorded. Those with (EC)DHE are still preferred.
func WithInsecurePSKWithoutDHE() Option {
	return func(o *options) error {
		o.psk.withoutDHE = true
		return nil
	}
}

// used returns the name of an option on pre-shared keys that was given, or "".
func (o *pskOptions) used() string {
	switch {
	case o.get != nil:
		return "WithPSK"
	case o.find != nil:
		return "WithPSKLookup"
	case o.orCertificate:
		return "WithPSKOrCertificate"
	case o.withoutDHE:
		return "WithInsecurePSKWithoutDHE"
	}
	return ""
}

// clientsNeed and serversNeed report whether a role has no other authentication than pre-shared keys.
func (o *pskOptions) clientsNeed() bool { return o.get != nil && !o.orCertificate }
func (o *pskOptions) serversNeed() bool { return o.find != nil && !o.orCertificate }

// A contextPSK has the cipher suites of a Context's connections with pre-shared keys.
type contextPSK struct {
	suites12, suites13 []uint16
}

// checkPSKOptions returns an error for an option on pre-shared keys that can't be honoured, or that the
// configuration contradicts. child means that GetConfigForClient has returned the configuration.
func (c *Context) checkPSKOptions(child bool) error {
	o, config := c.opts, c.config
	name := o.psk.used()
	switch {
	case name == "":
		return nil
	case c.fips:
		return &ConfigError{Field: name, Reason: "pre-shared keys are not used in FIPS mode"}
	case o.psk.get == nil && o.psk.find == nil:
		return &ConfigError{Field: name, Reason: "there are no pre-shared keys: use WithPSK or WithPSKLookup"}
	}
	const clients, servers = "clients authenticate by pre-shared keys alone: use WithPSKOrCertificate, or don't set the field",
		"servers authenticate by pre-shared keys alone: use WithPSKOrCertificate, or don't set the field"
	get, find := o.psk.clientsNeed() && !child, o.psk.serversNeed()
	for _, rule := range []struct {
		broken        bool
		field, reason string
	}{
		{find && len(config.Certificates) > 0, "Certificates", servers},
		{find && config.GetCertificate != nil, "GetCertificate", servers},
		{find && config.ClientAuth != tls.NoClientCert, "ClientAuth", servers},
		{find && config.ClientCAs != nil, "ClientCAs", servers},
		{find && o.cache != nil, "WithSessionCache", "connections with pre-shared keys have no sessions"},
		{find && o.ring != nil, "WithTicketKeys", "connections with pre-shared keys have no sessions"},
		{(get || find) && config.CipherSuites != nil, "CipherSuites", "the suites of TLS 1.2 with pre-shared keys are fixed"},
		{get && len(config.Certificates) > 0, "Certificates", clients},
		{get && config.GetClientCertificate != nil, "GetClientCertificate", clients},
		{get && config.RootCAs != nil, "RootCAs", clients},
		{get && config.InsecureSkipVerify, "InsecureSkipVerify", clients},
		{get && config.ClientSessionCache != nil, "ClientSessionCache", "connections with pre-shared keys have no sessions"},
		{(get || find) && config.VerifyPeerCertificate != nil, "VerifyPeerCertificate", "there are no certificates to verify: " +
			"use VerifyConnection"},
		{get && o.crls != nil && (find || config.GetCertificate == nil && config.GetConfigForClient == nil), "WithCRLs",
			"there are no certificates to look up"},
	} {
		if rule.broken {
			return &ConfigError{Field: rule.field, Reason: rule.reason}
		}
	}
	return nil
}

// pskSettings works out the cipher suites of connections with pre-shared keys.
func (c *Context) pskSettings(offer *negotiate.Offer) (*libssl.PSKSettings, error) {
	o := &c.opts.psk
	if o.used() == "" {
		return nil, nil
	}
	c.psk = new(contextPSK)
	if offer.MaxVersion() >= tls.VersionTLS13 {
		c.psk.suites13 = offer.TLS13CipherSuites
	}
	if offer.MinVersion() <= tls.VersionTLS12 {
		c.psk.suites12 = negotiate.Keep(libssl.PSKSuites(), func(id uint16) bool {
			return (o.withoutDHE || libssl.PSKSuiteHasECDHE(id)) && (!c.opts.http2 || negotiate.IsHTTP2PSKSuite(id)) &&
				c.host.AllowsPSK(id)
		})
		if len(c.psk.suites12) == 0 {
			return nil, configError(c.host.Refuse(libssl.TopicCipherSuites, o.used(), "it forbids the suites of TLS 1.2 with "+
				"pre-shared keys; set MinVersion to TLS 1.3"))
		}
	}
	alone := o.clientsNeed() && (c.serveErr != nil || o.serversNeed())
	return &libssl.PSKSettings{
		Servers:        o.find != nil,
		WithoutDHE:     o.withoutDHE,
		CipherSuites:   c.psk.suites12,
		Alone:          alone,
		NarrowsClients: o.clientsNeed() && !alone,
		NarrowsServers: o.find != nil && o.orCertificate, // the others have no certificate for another suite
	}, nil
}

// has reports whether there is a TLS 1.3 suite with a hash, among those that also permits allows.
func (p *contextPSK) has(sha384 bool, also func(id uint16) bool) bool {
	return slices.ContainsFunc(p.suites13, func(id uint16) bool { return libssl.HasSHA384(id) == sha384 && also(id) })
}

// Limits of a PSK. OpenSSL 1.1.1 has the lowest ones; TLS 1.2 identities are C strings there.
const (
	minPSK, maxPSK             = 16, 256
	maxIdentity, maxIdentity12 = 0xffff, 128
)

// check returns an error if a key that option has returned can't be used.
func (p *PSK) check(option string) error {
	reason := ""
	switch {
	case len(p.Key) < minPSK || len(p.Key) > maxPSK:
		reason = fmt.Sprintf("the key has %d bytes, not %d to %d", len(p.Key), minPSK, maxPSK)
	case !slices.ContainsFunc(p.Key, func(b byte) bool { return b != 0 }):
		reason = "the key is all zeros: it was not set"
	case p.Hash != 0 && p.Hash != crypto.SHA256 && p.Hash != crypto.SHA384:
		reason = fmt.Sprintf("the hash is %v, neither SHA-256 nor SHA-384", p.Hash)
	}
	if reason != "" {
		return &ConfigError{Field: option, Reason: reason}
	}
	return nil
}

// checkForClient also returns an error if a client of the Context can't offer the key.
func (p *PSK) checkForClient(c *Context) error {
	const option = "WithPSK"
	if err := p.check(option); err != nil {
		return err
	}
	reason := ""
	switch {
	case len(p.Identity) == 0 || len(p.Identity) > maxIdentity:
		reason = fmt.Sprintf("the identity has %d bytes, not 1 to %d", len(p.Identity), maxIdentity)
	case len(c.psk.suites12) > 0 && (len(p.Identity) > maxIdentity12 || slices.Contains(p.Identity, 0)):
		reason = fmt.Sprintf("OpenSSL can't send an identity of more than %d bytes or with a zero byte in TLS 1.2; set MinVersion "+
			"to TLS 1.3", maxIdentity12)
	case c.psk.suites13 != nil && !c.psk.has(p.sha384(), func(uint16) bool { return true }):
		reason = fmt.Sprintf("there is no TLS 1.3 cipher suite with the key's hash %v", p.hash())
	}
	if reason != "" {
		return &ConfigError{Field: option, Reason: reason}
	}
	return nil
}

func (p *PSK) hash() crypto.Hash {
	if p.Hash == 0 {
		return crypto.SHA256
	}
	return p.Hash
}

func (p *PSK) sha384() bool { return p.Hash == crypto.SHA384 }

// PSKIdentity returns the identity of the pre-shared key with which the connection was authenticated, or nil if
// it was not. VerifyConnection and [WithVerification] may call it: by then the peers have agreed on the key, and
// a server has checked that the client has it.
func (c *Conn) PSKIdentity() []byte {
	if identity := c.pskIdentity.Load(); identity != nil {
		return slices.Clone(*identity)
	}
	return nil
}
