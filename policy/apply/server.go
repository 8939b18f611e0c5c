package apply

import (
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/policy"
	"github.com/ossl-go/ossl/policy/internal/names"
	"github.com/ossl-go/ossl/session"
	"github.com/ossl-go/ossl/tlsnames"
)

// sessionCacheSize is the number of sessions in the cache of a policy that wants resumption by ID. nginx
// has about 4,000 in 1 MB of ssl_session_cache.
const sessionCacheSize = 4096

// An Unmet is a part of a policy that [Server] or [Client] can't express: the program must see to it,
// or the host's OpenSSL lacks it.
type Unmet struct {
	Field  string       `json:"field"`          // as in the policy's JSON: "groups", "chain.lifetime"
	Name   string       `json:"name,omitempty"` // of a value in a list: "x448"
	Value  string       `json:"value,omitempty"`
	Level  policy.Level `json:"level,omitempty"` // how much the policy wants it
	Reason string       `json:"reason"`
}

// String returns the part and the reason, as "groups x448: OpenSSL has no group x448".
func (u Unmet) String() string {
	part := slices.DeleteFunc([]string{u.Field, u.Name, u.Value}, func(s string) bool { return s == "" })
	return strings.Join(part, " ") + ": " + u.Reason
}

// Wanted reports whether the policy requires or recommends the part.
func (u Unmet) Wanted() bool { return u.Level == policy.Required || u.Level == policy.Recommended }

// weight orders the parts of a policy, those that it requires first.
func (u Unmet) weight() int {
	return slices.Index([]policy.Level{policy.Required, policy.Recommended, policy.Allowed}, u.Level)
}

// Server returns the configuration of a server that follows the policy on the host's OpenSSL: pass
// both to [ossl.NewContext], with the server's certificates added. Each call makes new session caches
// and ticket keys, so servers that share sessions have to share one result.
//
// Values of the level [policy.PhaseOut] are left out. Everything else that the configuration can't
// express is in the list of unmet parts: those that the policy requires first, then those that it
// recommends. Server returns an error if the host's OpenSSL is not usable, if the policy requires a
// value that ossl or this OpenSSL doesn't have, and if nothing is left of a list.
//
// Server doesn't look at dates: pass it the result of [policy.Policy.At].
func Server(p *policy.Policy) (*tls.Config, []ossl.Option, []Unmet, error) {
	return configure(p, false)
}

// Client returns the configuration of a client that follows the policy, as [Server] does for a
// server: versions, cipher suites, groups and signature algorithms. The order of suites is
// crypto/tls's. The configuration has a cache of sessions if the policy wants a kind of resumption and
// forbids none, since a client's cache holds all kinds. The server's certificate is verified as in
// every client; the program must compare its key and its lifetime with the policy, so these parts are
// unmet. The policy's parts for servers alone, such as the lifetime of sessions, are passed over.
func Client(p *policy.Policy) (*tls.Config, []ossl.Option, []Unmet, error) { return configure(p, true) }

func configure(p *policy.Policy, client bool) (*tls.Config, []ossl.Option, []Unmet, error) {
	if _, err := ossl.Library(); err != nil {
		return nil, nil, nil, err
	}
	if p.FIPS {
		if _, err := ossl.NewContext(&tls.Config{}, ossl.WithFIPS()); err != nil {
			return nil, nil, nil, fmt.Errorf("policy: %s: %w", p.Name, err)
		}
	} else if err := (thisHost{}).try(&tls.Config{}); err != nil {
		return nil, nil, nil, err // of the environment, such as a key log that can't be written
	}
	e, err := expand(p, thisHost{p.FIPS}, client)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("policy: %s: %w", p.Name, err)
	}
	config, options := e.build()
	slices.SortStableFunc(e.unmet, func(a, b Unmet) int { return a.weight() - b.weight() })
	return config, options, e.unmet, nil
}

// An expansion is a policy in the terms of ossl.
type expansion struct {
	client     bool
	min, max   uint16
	suites12   []uint16
	ordered    bool // suites12 is in order of preference
	suites13   []uint16
	groups     []tls.CurveID
	signatures []tls.SignatureScheme
	noTickets  bool
	cache      bool          // sessions are kept in a cache of this side
	lifetime   time.Duration // of sessions; 0 for ossl's default
	rotation   time.Duration // of ticket keys; 0 for ossl's default
	kernel     bool
	fips       bool
	unmet      []Unmet
}

// A host is an OpenSSL. Its methods return the reason why it lacks an ID, or nil if it has it.
type host interface {
	group(id tls.CurveID) error
	signature(id tls.SignatureScheme) error
	suite13(id uint16) error
	suite12(id uint16) error
}

// thisHost asks by making contexts, so that the answers are those that the program would get.
type thisHost struct{ fips bool }

func (h thisHost) try(config *tls.Config, options ...ossl.Option) error {
	if h.fips {
		options = append(options, ossl.WithFIPS())
	}
	_, err := ossl.NewContext(config, append(options, ossl.WithoutHostPolicy())...)
	return err
}

func (h thisHost) group(id tls.CurveID) error {
	return h.try(&tls.Config{CurvePreferences: []tls.CurveID{id}})
}

func (h thisHost) signature(id tls.SignatureScheme) error {
	return h.try(&tls.Config{}, ossl.WithSignatureAlgorithms(id))
}

func (h thisHost) suite13(id uint16) error {
	return h.try(&tls.Config{MinVersion: tls.VersionTLS13}, ossl.WithTLS13CipherSuites(id))
}

func (h thisHost) suite12(id uint16) error {
	return h.try(&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{id}})
}

func expand(p *policy.Policy, h host, client bool) (*expansion, error) {
	e := &expansion{client: client, fips: p.FIPS, kernel: p.Records.Kernel.Value == "yes"}
	if err := e.setVersions(p); err != nil {
		return nil, err
	}
	var err error
	if e.max == tls.VersionTLS13 {
		if e.suites13, err = pick(e, "suites13", p.Suites13, names.Suite13, h.suite13); err != nil {
			return nil, err
		}
	}
	if e.min == tls.VersionTLS12 {
		if e.suites12, err = pick(e, "suites12", p.Suites12, names.Suite12, h.suite12); err != nil {
			return nil, err
		}
	}
	if e.groups, err = pick(e, "groups", p.Groups, names.Usable[tls.CurveID](tlsnames.Groups), h.group); err != nil {
		return nil, err
	}
	if e.signatures, err = pick(e, "signatures", p.Signatures, names.Usable[tls.SignatureScheme](tlsnames.SignatureSchemes),
		h.signature); err != nil {
		return nil, err
	}
	e.setOrder(p)
	if err := e.setResumption(&p.Resumption); err != nil {
		return nil, err
	}
	if p.FIPS && e.kernel {
		return nil, fmt.Errorf("records.kernel: the kernel's cryptography is not part of a FIPS module")
	}
	if p.Records.Compression.Value == "yes" {
		return nil, fmt.Errorf("records.compression: ossl has no compression")
	}
	e.noteRest(p)
	return e, nil
}

func (e *expansion) setVersions(p *policy.Policy) error {
	for _, v := range p.Versions {
		if v.Level == policy.PhaseOut {
			continue
		}
		id := names.Version(v.Name)
		if id < tls.VersionTLS12 {
			if v.Level == policy.Required {
				return fmt.Errorf("versions: ossl refuses %s, which the policy requires", v.Name)
			}
			e.leave("versions", v.Name, "", v.Level, "ossl refuses versions below TLS 1.2")
			continue
		}
		e.max = max(e.max, id)
		if e.min == 0 || id < e.min {
			e.min = id
		}
	}
	if e.min == 0 {
		return fmt.Errorf("versions: none is left that ossl has")
	}
	return nil
}

// pick returns the IDs of a list's values. Those that the host lacks are unmet.
func pick[ID ~uint16](
	e *expansion, field string, list []policy.Value, idOf func(name string) ID, missing func(ID) error,
) ([]ID, error) {
	var ids []ID
	why := "the list is empty"
	for _, v := range list {
		if v.Level == policy.PhaseOut {
			continue
		}
		id, reason := idOf(v.Name), "ossl has no name for it"
		if v.Needs == policy.EncryptThenMAC {
			reason = "ossl can't refuse clients without encrypt-then-MAC, which the policy needs"
		} else if id != 0 {
			err := missing(id)
			if err == nil {
				ids = append(ids, id)
				continue
			}
			reason = err.Error()
		}
		if v.Level == policy.Required {
			return nil, fmt.Errorf("%s: the policy requires %s: %s", field, v.Name, reason)
		}
		e.leave(field, v.Name, "", v.Level, reason)
		why = v.Name + ": " + reason
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s: none is left that ossl has; %s", field, why)
	}
	return ids, nil
}

// groupOrder is crypto/tls's order, which ossl uses also if CurvePreferences has another one.
var groupOrder = []tls.CurveID{tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024, libssl.MLKEM1024,
	tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}

// setOrder takes the policy's order of suites. The order of groups is always crypto/tls's.
func (e *expansion) setOrder(p *policy.Policy) {
	switch {
	case e.client:
	case p.Order.Value == "client":
		e.leave("order", "", "client", p.Order.Level, "servers of ossl choose the cipher suite by their own order, as crypto/tls's do")
	case p.Order.Value == "server":
		e.ordered = len(e.suites12) > 0
	}
	place := func(a, b tls.CurveID) int { return slices.Index(groupOrder, a) - slices.Index(groupOrder, b) }
	if !slices.IsSortedFunc(e.groups, place) {
		e.leave("groups", "", "order", policy.Allowed, "the order of groups is crypto/tls's")
	}
}

// setResumption chooses tickets and a cache. A server resumes TLS 1.2 by ID, and TLS 1.3 without
// tickets' keys, from its cache only, and TLS 1.3 by tickets if there are both.
func (e *expansion) setResumption(r *policy.Resumption) error {
	if r.Early.Value == "yes" {
		return fmt.Errorf("resumption.early: ossl has no early data")
	}
	if e.client {
		kinds := map[string]policy.Setting{"tls13": r.TLS13, "id": r.ID, "tickets": r.Tickets}
		forbids := func(s policy.Setting) bool { return s.Value == "no" }
		forbidden := slices.ContainsFunc(slices.Collect(maps.Values(kinds)), forbids)
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			if s := kinds[kind]; s.Value == "yes" && forbidden {
				e.leave("resumption."+kind, "", s.Value, s.Level, "the policy forbids another kind, and a client's cache holds all kinds")
			} else if s.Value == "yes" {
				e.cache = true
			}
		}
		return nil
	}
	e.noTickets = r.Tickets.Value == "no"
	e.cache = r.ID.Value == "yes"
	switch {
	case r.TLS13.Value == "no" && (e.cache || r.Tickets.Value == "yes") && e.max == tls.VersionTLS13:
		return fmt.Errorf("resumption: ossl can't resume TLS 1.2 without TLS 1.3")
	case r.TLS13.Value == "no":
		e.noTickets = true
	case r.TLS13.Value == "yes" && e.noTickets && r.ID.Value == "no":
		return fmt.Errorf("resumption: ossl can't resume TLS 1.3 without tickets and without a cache")
	case r.TLS13.Value == "yes" && e.noTickets:
		e.cache = true
	}
	e.lifetime = time.Duration(r.Lifetime.Value) * time.Second
	if rotation := time.Duration(r.Rotation.Value) * time.Second; rotation > 0 && rotation < 24*time.Hour && !e.noTickets {
		e.rotation = rotation // else ossl's own keys, which change every 24 hours, follow the policy
	}
	return nil
}

// noteRest lists the program's own duties: its certificates, its sockets and its HTTP server.
func (e *expansion) noteRest(p *policy.Policy) {
	certificate, staple := "it depends on the certificate, which the program gives", "the program sets tls.Certificate.OCSPStaple"
	if e.client {
		certificate, staple = "it depends on the server's certificate", "the program reads tls.ConnectionState.OCSPResponse"
	}
	for _, l := range p.Lines() {
		if l.Value == "" && l.Name == "" {
			continue
		}
		switch top, _, _ := strings.Cut(l.Field, "."); {
		case top == "keys", top == "chain":
			if l.Level != policy.PhaseOut {
				e.leave(l.Field, l.Name, l.Value, l.Level, certificate)
			}
		case top == "stapling":
			if l.Value == "finding" {
				e.leave(l.Field, "", l.Value, l.Level, staple)
			}
		case l.Field == "records.buffer_size":
			e.leave(l.Field, "", l.Value, l.Level, "ossl grows records from 1 packet to 16 KB, as crypto/tls does")
		case l.Field == "sockets.sendfile" && l.Value == "yes", l.Field == "sockets.sendfile_chunk":
			e.leave(l.Field, "", l.Value, l.Level, "the program calls Conn.SendFile or Conn.ReadFrom")
		case l.Field == "sockets.nodelay" && l.Value == "no", l.Field == "sockets.nopush":
			e.leave(l.Field, "", l.Value, l.Level, "sockets are the program's; package net sets TCP_NODELAY")
		case l.Field == "sockets.hsts" && !e.client:
			e.leave(l.Field, "", l.Value, l.Level, "the HTTP server sends the header")
		}
	}
}

func (e *expansion) leave(field, name, value string, level policy.Level, reason string) {
	e.unmet = append(e.unmet, Unmet{field, name, value, level, reason})
}

// build makes the configuration and the options.
func (e *expansion) build() (*tls.Config, []ossl.Option) {
	config := &tls.Config{
		MinVersion:             e.min,
		MaxVersion:             e.max,
		CipherSuites:           e.suites12,
		CurvePreferences:       e.groups,
		SessionTicketsDisabled: e.noTickets,
	}
	options := []ossl.Option{ossl.WithSignatureAlgorithms(e.signatures...)}
	if e.ordered {
		options = append(options, ossl.WithCipherSuiteOrder())
	}
	if e.suites13 != nil {
		options = append(options, ossl.WithTLS13CipherSuites(e.suites13...))
	}
	if e.cache && e.client {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	} else if e.cache {
		options = append(options, ossl.WithSessionCache(session.NewCache(sessionCacheSize)))
		if !e.noTickets {
			options = append(options, ossl.WithTLS13Tickets())
		}
	}
	if e.lifetime != 0 {
		options = append(options, ossl.WithSessionLifetime(e.lifetime))
	}
	if e.rotation != 0 {
		options = append(options, ossl.WithTicketKeys(session.NewRotatingRing(e.rotation, max(e.rotation, e.lifetime))))
	}
	if e.kernel {
		options = append(options, ossl.WithKernelTLS())
	}
	if e.fips {
		options = append(options, ossl.WithFIPS())
	}
	return config, options
}
