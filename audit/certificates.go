package audit

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// A keyKind is a kind of key for which a server may have a certificate of its own.
type keyKind struct {
	name    string
	part    string   // up to TLS 1.2: of the names of the cipher suites for this kind of key
	schemes []uint16 // TLS 1.3: a signature scheme determines the kind
	prefix  []string // of the schemes' names
}

var keyKinds = []keyKind{
	{
		name: "ECDSA or EdDSA", part: "_ECDSA_", prefix: []string{"ecdsa_", "ed25519", "ed448"},
		schemes: []uint16{0x0403, 0x0503, 0x0603, 0x0807, 0x0808},
	},
	{
		name: "RSA", part: "_RSA_", prefix: []string{"rsa_"},
		schemes: []uint16{0x0804, 0x0805, 0x0806, 0x0809, 0x080a, 0x080b},
	},
	{name: "ML-DSA", prefix: []string{"mldsa"}, schemes: []uint16{0x0904, 0x0905, 0x0906}},
}

// allSchemes are the schemes in which certificates may be signed.
var allSchemes = []uint16{0x0403, 0x0503, 0x0603, 0x0807, 0x0808, 0x0804, 0x0805, 0x0806, 0x0809, 0x080a, 0x080b,
	0x0401, 0x0501, 0x0601, 0x0904, 0x0905, 0x0906, 0x0203, 0x0201}

// Extensions that the probe sends by number.
const (
	extensionSCT              = 18
	extensionCertificateSigns = 50 // signature_algorithms_cert
)

// certificates collects the chains of each kind of key that the server has. TLS 1.2 and earlier send
// them in the clear: one connection a kind, without a handshake.
func certificates(ctx context.Context, r *run) error {
	facts := &r.facts.Certificates
	facts.Outcome = Outcome{State: Tested}
	for i := range keyKinds {
		kind := &keyKinds[i]
		version, suites, known := r.versionFor(kind)
		if version == 0 {
			continue
		}
		chain, err := r.fetchChain(ctx, kind, version, suites)
		if ctx.Err() != nil {
			facts.Outcome = Outcome{Failed, "the audit was interrupted"}
			return ctx.Err()
		}
		switch {
		case chain != nil:
			facts.add(*chain)
		case err == nil && !known:
		case err == nil:
			facts.Outcome = Outcome{Failed, "the server has " + kind.name + " keys, and refused to show their certificate"}
		default:
			facts.Outcome = Outcome{Failed, fmt.Sprintf("certificates of %s keys: %v", kind.name, err)}
		}
	}
	if len(facts.Chains) == 0 && facts.State == Tested {
		facts.Outcome = Outcome{Failed, "the server showed no certificate"}
	}
	return nil
}

// add adds a chain, unless its leaf is there already: some servers send one chain to all clients.
func (f *CertificateFacts) add(chain ChainFacts) {
	for _, c := range f.Chains {
		if len(c.DER) > 0 && len(chain.DER) > 0 && bytes.Equal(c.DER[0], chain.DER[0]) {
			return
		}
	}
	f.Chains = append(f.Chains, chain)
}

// versionFor returns the version in which a kind of key can be seen with the least work, or 0 if the
// server can't have the kind. Up to TLS 1.2 it also returns the server's suites for the kind. Known
// reports whether the server is known to have it.
func (r *run) versionFor(kind *keyKind) (version uint16, suites []uint16, known bool) {
	versions := r.facts.Protocols.Versions
	for version = hello.TLS12; kind.part != "" && version >= hello.SSL3; version-- {
		for _, name := range versions[hello.VersionName(version)].Suites {
			if suite, ok := hello.Suite(name); ok && strings.Contains(name, kind.part) {
				suites = append(suites, suite)
			}
		}
		if suites != nil {
			return version, suites, true
		}
	}
	f := versions["TLS 1.3"]
	switch {
	case len(f.Signatures) > 0:
		for _, prefix := range kind.prefix {
			if slices.ContainsFunc(f.Signatures, func(s string) bool { return strings.HasPrefix(s, prefix) }) {
				return hello.TLS13, nil, true
			}
		}
	case kind.part != "" && (f.Offered || len(versions) == 0): // not looked at: ask
		return hello.TLS13, nil, false
	}
	return 0, nil, false
}

// fetchChain returns the chain of a kind of key, or nil if the server refuses the kind.
func (r *run) fetchChain(ctx context.Context, kind *keyKind, version uint16, suites []uint16) (*ChainFacts, error) {
	in := chainInput{name: r.options.ServerName, roots: r.options.Roots, checkCRL: r.options.CheckCRL}
	var err error
	if version == hello.TLS13 {
		err = r.fetch13(ctx, kind, &in)
	} else {
		err = r.fetch12(ctx, version, suites, &in)
	}
	if err != nil || in.der == nil {
		return nil, err
	}
	in.now = r.options.At
	staple := in.staple
	in.staple = nil
	chain := analyse(in)
	if len(staple) > 0 { // the response is today's, even if options.At is another day
		in.staple, in.now = staple, time.Now()
		stapled := analyse(in)
		chain.Staple, chain.Stapled, chain.StapleError = staple, true, stapled.StapleError
		chain.StapleFrom, chain.StapleUntil, chain.SCTs = stapled.StapleFrom, stapled.StapleUntil, stapled.SCTs
	}
	chain.fetch = func(ctx context.Context) (*ChainFacts, error) { return r.fetchChain(ctx, kind, version, suites) }
	return &chain, nil
}

func (r *run) fetch12(ctx context.Context, version uint16, suites []uint16, in *chainInput) error {
	h := r.oldHello(version, suites, groups12)
	if version > hello.SSL3 {
		h.StatusRequest, h.Extra = true, []hello.Extension{{Type: extensionSCT}}
	}
	reply, err := r.exchange(ctx, h, hello.AtDone)
	if err != nil || reply.ServerHello == nil {
		return err
	}
	in.der, in.staple = reply.Certificates, reply.Status
	if in.der == nil && reply.Alert == nil {
		in.der = [][]byte{}
	}
	if scts, ok := reply.ServerHello.Extension(extensionSCT); ok {
		in.scts = scts
	}
	return nil
}

func (r *run) fetch13(ctx context.Context, kind *keyKind, in *chainInput) error {
	h := client.Default(r.serverName())
	h.Signatures = kind.schemes
	list := binary.BigEndian.AppendUint16(nil, uint16(2*len(allSchemes)))
	for _, s := range allSchemes {
		list = binary.BigEndian.AppendUint16(list, s)
	}
	h.Extra = append(h.Extra, hello.Extension{Type: extensionCertificateSigns, Data: list})
	for try := 0; ; try++ {
		state, err := r.certificates13(ctx, &client.Config{Hello: h})
		if state != nil && state.Certificates != nil { // even if the handshake failed after them
			in.der, in.staple, in.scts = state.Certificates, state.Staple, state.SCTs
			return nil
		}
		var alert *client.AlertError
		switch {
		case err == nil:
			in.der = [][]byte{}
			return nil
		case errors.As(err, &alert):
			return nil
		case ctx.Err() != nil, finalError(err), errors.As(err, new(*client.ProtocolError)),
			errors.As(err, new(*client.UnsupportedError)), errors.As(err, new(*hello.SyntaxError)), errors.As(err, new(*startTLSError)):
			return err
		}
		switch err := r.retry(ctx, r.address, err, try); err {
		case nil:
		case errNoAlert:
			return nil
		default:
			return err
		}
	}
}

// certificates13 makes one handshake, and closes the connection.
func (r *run) certificates13(ctx context.Context, config *client.Config) (*client.State, error) {
	conn, err := r.dial(ctx, r.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	tls, err := r.clientHandshake13(conn, config)
	if tls == nil {
		return nil, err
	}
	r.count(func(c *Cost) {
		if err == nil {
			c.Handshakes++
		}
		c.Signatures++ // the server signs before it sends its certificates
	})
	return &tls.State, err
}

// staples looks a second time at chains that could have a stapled response and had none: nginx and
// others fetch a response only after the first client has asked for it.
func staples(ctx context.Context, r *run) error {
	for i := range r.facts.Certificates.Chains {
		c := &r.facts.Certificates.Chains[i]
		if c.Stapled || len(c.OCSP) == 0 || c.fetch == nil {
			continue
		}
		again, err := c.fetch(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && again != nil && again.Stapled && len(again.DER) > 0 && bytes.Equal(again.DER[0], c.DER[0]) {
			*c = *again
		}
	}
	return nil
}
