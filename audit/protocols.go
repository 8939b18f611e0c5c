package audit

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/tlsnames"
)

// probeProtocols finds versions, suites, groups and the server's order. In TLS 1.3 it offers no key
// share: the server's HelloRetryRequests name a suite and a group, and no key is used. In TLS 1.2
// and earlier it removes from its offer the suite or the group that the server has chosen, until
// the server refuses the rest.
func probeProtocols(ctx context.Context, r *run) error {
	p := &protocols{run: r, ctx: ctx, versions: map[string]VersionFacts{}}
	p.current()
	if p.noTLS != nil {
		return p.noTLS
	}
	p.old()
	if p.good != nil && p.versions["TLS 1.3"].State == Failed { // it was asked before any answer was known
		p.current()
	}
	p.ssl2()
	p.size()
	facts := &r.facts.Protocols
	facts.Versions, facts.Lies = p.versions, p.lies
	facts.Outcome = Outcome{State: Tested}
	return ctx.Err()
}

// protocols is the state of probeProtocols.
type protocols struct {
	run      *run
	ctx      context.Context
	versions map[string]VersionFacts
	lies     []string
	shares   shareMode
	// first12 is the answer to a hello with TLS 1.3 and 1.2 by a server without TLS 1.3.
	first12 *hello.Reply
	// older has the suites of a later version than the one that is looked at, if all are known.
	older []uint16
	good  *hello.ClientHello // the last that the server answered by a ServerHello
	lost  error              // of several connections, before any answer
	large error              // of the first hello, if it was lost
	noTLS error              // the server speaks another protocol
	tries int
}

// A helloAnswer is a server's answer to a ClientHello: a ServerHello, or a refusal, or an error,
// which is no answer about the server's offer.
type helloAnswer struct {
	reply   *hello.Reply
	refused *hello.Alert
	err     error
}

// errLie is wrapped by the errors of answers that no client offered.
var errLie = errors.New("the server's answer breaks the protocol")

// ask sends a ClientHello.
func (p *protocols) ask(h *hello.ClientHello, stop hello.Stop) helloAnswer {
	if p.lost != nil {
		return helloAnswer{err: p.lost}
	}
	reply, err := p.run.exchange(p.ctx, h, stop)
	if p.tries++; p.tries == silentTries && p.good == nil && errors.Is(err, errLost) {
		p.lost = err
	}
	if err == nil && reply.ServerHello == nil && reply.Alert == nil {
		err = &hello.SyntaxError{Message: "the answer to TLS is SSL 2"}
	}
	if reply != nil && reply.ServerHello != nil {
		if lie := checkOffered(h, reply); lie != nil {
			err = lie
		}
	}
	if err != nil {
		var syntax *hello.SyntaxError
		if errors.As(err, &syntax) || errors.Is(err, errLie) {
			lie := err.Error()
			if !slices.Contains(p.lies, lie) {
				p.lies = append(p.lies, lie)
			}
		}
		return helloAnswer{err: err}
	}
	if reply.Alert != nil {
		return helloAnswer{reply: reply, refused: reply.Alert}
	}
	p.good = h
	return helloAnswer{reply: reply}
}

// silentTries is the number of lost connections after which a server that never answered isn't
// asked again.
const silentTries = 3

// checkOffered returns an error if a ServerHello has a version, a suite, a group or a compression
// method that the ClientHello doesn't offer.
func checkOffered(h *hello.ClientHello, reply *hello.Reply) error {
	s := reply.ServerHello
	version := max(h.Version, hello.SSL3)
	if h.Version == 0 {
		version = hello.TLS12
	}
	switch {
	case s.Version == hello.TLS13 && !slices.Contains(h.Versions, hello.TLS13),
		s.Version < hello.SSL3, s.Version > hello.TLS13, s.Version != hello.TLS13 && s.Version > version:
		return fmt.Errorf("%w: it chose %s, which wasn't offered", errLie, hello.VersionName(s.Version))
	case !slices.Contains(h.Suites, s.Suite):
		return fmt.Errorf("%w: it chose the cipher suite %s, which wasn't offered", errLie, hello.SuiteName(s.Suite))
	case s.Group != 0 && !slices.Contains(h.Groups, s.Group):
		return fmt.Errorf("%w: it chose the group %s, which wasn't offered", errLie, hello.GroupName(s.Group))
	case reply.KeyExchange != nil && reply.KeyExchange.Group != 0 && !slices.Contains(h.Groups, reply.KeyExchange.Group):
		return fmt.Errorf("%w: it chose the group %s, which wasn't offered", errLie, hello.GroupName(reply.KeyExchange.Group))
	case s.Compression != 0 && !slices.Contains(h.Compressions, s.Compression):
		return fmt.Errorf("%w: it chose the compression method %d, which wasn't offered", errLie, s.Compression)
	}
	if x, _ := hello.SuiteExchange(s.Suite); (x == hello.AnyExchange) != (s.Version == hello.TLS13) {
		return fmt.Errorf("%w: it chose %s in %s", errLie, hello.SuiteName(s.Suite), hello.VersionName(s.Version))
	}
	return nil
}

// put records the facts of a version.
func (p *protocols) put(version uint16, f VersionFacts) { p.versions[hello.VersionName(version)] = f }

// absent records that the server refused a version.
func (p *protocols) absent(version uint16) {
	p.put(version, VersionFacts{Outcome: Outcome{State: Tested}})
}

// failed records that an error keeps a version unknown.
func (p *protocols) failed(version uint16, err error) {
	p.put(version, VersionFacts{Outcome: Outcome{Failed, err.Error()}})
}

// serverName returns the name for server_name: never an address (RFC 6066, section 3).
func (r *run) serverName() string {
	name := strings.TrimSuffix(r.options.ServerName, ".")
	if _, err := netip.ParseAddr(name); err == nil {
		return ""
	}
	return name
}

// Suites, groups and schemes that are offered. ChaCha20 is the last: some servers prefer it if it
// is the client's first.
var (
	offered13 = []uint16{0x1304, 0x1305, 0x1301, 0x1302, 0x00c6, 0x00c7, chacha13}
	offered12 = suites12()
	groups13  = withOtherGroups(0x11ec, 0x001d, 0x0017, 0x0018, 0x11eb, 0x11ed, 0x0019, 0x001e, 0x0200, 0x0201, 0x0202, 0x6399,
		0x11ee, 0x0029)
	groups12 = groupsUpTo(0x001e)
	// signatureSchemes are the signature schemes, the weak ones last.
	signatureSchemes = append([]uint16{0x0403, 0x0503, 0x0603, 0x0807, 0x0808, 0x0804, 0x0805, 0x0806, 0x0809, 0x080a, 0x080b,
		0x0401, 0x0501, 0x0601, 0x0402, 0x0502, 0x0602, 0x081a, 0x081b, 0x081c, 0x0904, 0x0905, 0x0906, 0x0708,
		0x0303, 0x0301, 0x0302}, weakSchemes...)
	// weakSchemes have MD5 or SHA-1. Servers would prefer SHA-224 to these, and so hide them.
	weakSchemes = []uint16{0x0203, 0x0201, 0x0202, 0x0101}
)

const chacha13 uint16 = 0x1303

// chacha12 are the TLS 1.2 suites with ChaCha20.
var chacha12 = []uint16{0xcca8, 0xcca9, 0xccaa}

// suites12 returns the suites for TLS 1.2 and earlier, ECDHE with AES-GCM first: if the client's
// first suite is such a suite, crypto/tls assumes that the client has instructions for AES.
func suites12() (all []uint16) {
	var gcm, rest []uint16
	for _, s := range hello.Suites() {
		x, _ := hello.SuiteExchange(s)
		switch {
		case s == 0, x == hello.AnyExchange, x == hello.UnknownExchange, slices.Contains(chacha12, s):
		case x == hello.ECDHE && strings.Contains(hello.SuiteName(s), "_WITH_AES_") && strings.Contains(hello.SuiteName(s), "_GCM_"):
			gcm = append(gcm, s)
		default:
			rest = append(rest, s)
		}
	}
	return slices.Concat(gcm, rest, chacha12)
}

// withOtherGroups appends the other TLS 1.3 groups: those with later numbers than the curves for
// TLS 1.2 alone, but no drafts.
func withOtherGroups(groups ...uint16) []uint16 {
	for e := range tlsnames.Groups.All() {
		if e.ID > 0x001c && e.ID < 0x6399 {
			groups = with(groups, e.ID)
		}
	}
	return groups
}

// groupsUpTo returns the TLS 1.2 elliptic curves, common ones first.
func groupsUpTo(last uint16) []uint16 {
	groups := []uint16{0x001d, 0x0017, 0x0018, 0x0019}
	for g := last; g > 0; g-- {
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// without returns the values that aren't in remove.
func without(values, remove []uint16) (rest []uint16) {
	for _, v := range values {
		if !slices.Contains(remove, v) {
			rest = append(rest, v)
		}
	}
	return rest
}

// with appends a value that is new.
func with(values []uint16, v uint16) []uint16 {
	if slices.Contains(values, v) {
		return values
	}
	return append(values, v)
}

func names(values []uint16, name func(uint16) string) (all []string) {
	for _, v := range values {
		all = append(all, name(v))
	}
	return all
}

// reversed returns the values with the first at the end, and of the others ChaCha20 not at the
// beginning if that can be: a server of its own order chooses the first again.
func reversed(values []uint16) []uint16 {
	r := slices.Clone(values)
	slices.Reverse(r)
	if len(r) > 2 && isChaCha(r[0]) {
		r[0], r[1] = r[1], r[0]
	}
	return r
}

// order compares the choice from a reversed list.
func order(found []uint16, choice uint16) string {
	switch {
	case len(found) < 2:
		return ""
	case choice == found[0]:
		return orderServer
	case choice == reversed(found)[0]:
		return orderClient
	case isChaCha(choice): // crypto/tls: the client's first suite isn't AES-GCM
		return orderServer
	}
	return ""
}

// Orders of VersionFacts.
const (
	orderServer = "server"
	orderClient = "client"
	orderChaCha = "server, ChaCha20 if the client prefers it"
)

// ssl2 asks for SSL 2. A server without it refuses by an alert, or closes the connection without
// one. To distinguish this from a lost connection, ssl2 then asks for something that the server
// has.
func (p *protocols) ssl2() {
	packet, err := hello.MarshalSSL2(hello.SSL2Ciphers, nil)
	if err == nil {
		err = p.lost
	}
	if err != nil {
		p.failed(hello.SSL2, err)
		return
	}
	reply, err := p.ssl2Once(packet)
	if closed(err) { // the other question was lost too: the pause of a lost connection, and both again
		p.run.count(func(c *Cost) { c.Retried++ })
		if err = sleep(p.ctx, lostPause); err == nil {
			reply, err = p.ssl2Once(packet)
		}
	}
	switch {
	case reply != nil && reply.SSL2 != nil:
		f := VersionFacts{Outcome: Outcome{State: Tested}, Offered: true}
		for _, s := range reply.SSL2.Suites {
			f.Suites = append(f.Suites, hello.SSL2Name(s))
		}
		p.put(hello.SSL2, f)
	case err == nil || errors.As(err, new(*hello.SyntaxError)) && p.good != nil:
		p.absent(hello.SSL2)
	default:
		p.failed(hello.SSL2, err)
	}
}

// ssl2Once returns the answer to a hello of SSL 2, or no error and no reply of SSL 2 if the server
// closes the connection, and answers a hello that it is known to answer.
func (p *protocols) ssl2Once(packet []byte) (*hello.Reply, error) {
	reply, err := p.run.exchangeOnce(p.ctx, p.run.address, packet, hello.AtServerHello)
	if !closed(err) || p.good == nil {
		return reply, err
	}
	_, err = p.run.exchangeOnce(p.ctx, p.run.address, p.run.refusals.good, hello.AtServerHello)
	return nil, err
}
