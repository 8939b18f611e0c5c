package audit

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// A shareMode selects the key shares that are offered in TLS 1.3.
type shareMode int

const (
	noShares     shareMode = iota // an empty key_share (RFC 8446, section 4.2.8): the server signs nothing
	greaseShare                   // an unknown group's share (RFC 8701): the same, for servers that refuse none
	actualShares                  // the server signs each answer
)

// greaseGroup is the group of greaseShare.
const greaseGroup uint16 = 0x2a2a

// hello13 returns a TLS 1.3 ClientHello.
func (p *protocols) hello13(suites, groups []uint16) *hello.ClientHello {
	h := &hello.ClientHello{
		Suites: suites, Groups: groups, ServerName: p.run.serverName(), SessionID: make([]byte, 32),
		Points: []byte{0}, Signatures: signatureSchemes, Versions: []uint16{hello.TLS13}, PSKModes: []byte{1},
		KeyShares: []hello.KeyShare{}, ExtendedMaster: true, Renegotiation: true,
	}
	switch p.shares {
	case greaseShare:
		h.Groups = append([]uint16{greaseGroup}, groups...)
		h.KeyShares = []hello.KeyShare{{Group: greaseGroup, Data: []byte{0}}}
	case actualShares:
		for _, g := range groups {
			if share, err := client.NewShare(g); err == nil {
				h.KeyShares = append(h.KeyShares, share)
			}
		}
	}
	return h
}

// current finds TLS 1.3. Its first hello offers TLS 1.2 and earlier too: a server without TLS 1.3
// answers with an older version, instead of an alert that could have other reasons.
func (p *protocols) current() {
	h := p.hello13(slices.Concat(offered13, offered12), slices.Concat(groups13, without(groups12, groups13)))
	h.Versions = []uint16{hello.TLS13, hello.TLS12, hello.TLS11, hello.TLS10}
	if p.good == nil {
		h.Pad = largeHello
	}
	a := p.ask(h, hello.AtServerHello)
	if a.err != nil && p.recognise(a.err) {
		a = p.ask(h, hello.AtServerHello)
	}
	if p.noTLS != nil {
		return
	}
	if errors.Is(a.err, errLost) && p.good == nil {
		p.large = a.err
		if a = p.ask(p.smallHello(), hello.AtServerHello); a.refused == nil && a.err == nil {
			if a.reply.ServerHello.Version < hello.TLS13 {
				p.absent(hello.TLS13)
				return
			}
			a = p.ask(p.hello13(offered13, groups13), hello.AtServerHello)
		}
	}
	if a.reply != nil && a.refused == nil && a.reply.ServerHello.Version < hello.TLS13 {
		p.first12 = a.reply
		p.absent(hello.TLS13)
		return
	}
	// A refusal can have other reasons: so many suites, old groups, no key share.
	for mode := noShares; (a.refused != nil || errors.Is(a.err, errLost)) && mode <= actualShares; mode++ {
		p.shares = mode
		a = p.ask(p.hello13(offered13, groups13), hello.AtServerHello)
		if a.refused != nil && a.refused.Code == alertVersion {
			break
		}
	}
	switch {
	case a.err != nil:
		p.failed(hello.TLS13, a.err)
	case a.refused != nil:
		p.absent(hello.TLS13)
	case a.reply.ServerHello.Version < hello.TLS13:
		p.lies = append(p.lies, "it chose "+hello.VersionName(a.reply.ServerHello.Version)+" for a client of TLS 1.3 only")
		p.absent(hello.TLS13)
	default:
		p.put(hello.TLS13, p.lists13(a.reply.ServerHello))
	}
}

// lists13 finds the TLS 1.3 suites and groups after the first answer.
func (p *protocols) lists13(first *hello.ServerHello) VersionFacts {
	f := VersionFacts{Outcome: Outcome{State: Tested}, Offered: true, Retry: first.Retry}
	suites, groups := []uint16{first.Suite}, []uint16{first.Group}
	// next asks for a suite and a group, and reports whether the server had them.
	next := func(s, g []uint16) bool {
		if len(s) == 0 || len(g) == 0 || f.Partial != "" {
			return false
		}
		a := p.ask(p.hello13(s, g), hello.AtServerHello)
		if a.err != nil {
			f.Partial = a.err.Error()
			return false
		}
		if a.refused != nil {
			return false
		}
		h := a.reply.ServerHello
		suites, groups = with(suites, h.Suite), with(groups, h.Group)
		return true
	}
	// Suites and groups are removed together until no suite or no group is left.
	for next(without(offered13, suites), without(groups13, groups)) {
	}
	known := len(groups)
	for next(suites, without(groups13, groups)) {
	}
	if len(groups) == known { // the groups had run out, and perhaps not the suites
		for next(without(offered13, suites), groups) {
		}
	}
	if len(suites) > 1 || len(groups) > 1 {
		p.order13(&f, suites, groups)
	}
	f.Suites, f.Groups = names(suites, hello.SuiteName), names(groups, hello.GroupName)
	return f
}

// order13 finds whose order of suites and groups decides.
func (p *protocols) order13(f *VersionFacts, suites, groups []uint16) {
	a := p.ask(p.hello13(reversed(suites), reversed(groups)), hello.AtServerHello)
	switch {
	case a.err != nil:
		f.Partial = a.err.Error()
		return
	case a.refused != nil:
		f.Partial = fmt.Sprintf("the server refused suites and groups that it has, by %s", a.refused)
		return
	}
	f.Order, f.GroupOrder = order(suites, a.reply.ServerHello.Suite), order(groups, a.reply.ServerHello.Group)
	if f.Order != orderServer || !slices.Contains(suites[1:], chacha13) {
		return
	}
	if a := p.ask(p.hello13([]uint16{chacha13, suites[0]}, groups), hello.AtServerHello); a.err != nil {
		f.Partial = a.err.Error()
	} else if a.refused == nil && a.reply.ServerHello.Suite == chacha13 {
		f.Order = orderChaCha
	}
}
