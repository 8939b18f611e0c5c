package audit

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/ossl-go/ossl/audit/internal/hello"
)

// closed reports whether the server closed or reset the connection.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// scsv is TLS_EMPTY_RENEGOTIATION_INFO_SCSV, for versions without extensions.
const scsv uint16 = 0x00ff

// oldHello is a ClientHello of SSL 3 to TLS 1.2.
func (r *run) oldHello(version uint16, suites, groups []uint16) *hello.ClientHello {
	h := &hello.ClientHello{RecordVersion: min(version, hello.TLS10), Version: version, Suites: suites}
	if version == hello.SSL3 {
		h.Suites = append(slices.Clone(suites), scsv)
		return h
	}
	h.ServerName, h.Groups, h.Points = r.serverName(), groups, []byte{0}
	h.ExtendedMaster, h.Renegotiation = true, true
	if version == hello.TLS12 {
		h.Signatures = signatureSchemes
	}
	return h
}

// old finds TLS 1.2 and earlier. A server answers a hello with the latest version that it has in
// common with the client, so its answer to TLS 1.2 shows which versions it doesn't have.
func (p *protocols) old() {
	for version := hello.TLS12; version >= hello.SSL3; version-- {
		first := p.first12
		p.first12 = nil
		if first == nil {
			a := p.ask(p.run.oldHello(version, offered12, groups12), hello.AtDone)
			if a.err != nil {
				p.failed(version, a.err)
				continue
			}
			if a.refused != nil {
				p.absent(version)
				if a.refused.Code == alertVersion { // the server has nothing below either
					for version--; version >= hello.SSL3; version-- {
						p.absent(version)
					}
					return
				}
				continue
			}
			first = a.reply
		}
		for ; version > first.ServerHello.Version; version-- {
			p.absent(version)
		}
		p.put(version, p.lists12(version, first))
	}
}

// partialBound is VersionFacts.Partial if the list is long. Weak suites aren't missed then.
const partialBound = "the audit stops after %d suites, and asks for one of each weak kind; --all finds all"

// Bounds on the connections for one version. After maxSuites, the audit looks for weak suites only.
// A version that inherits the suites of a later one has few of its own.
const (
	maxSuites = 14
	maxOlder  = 2
)

// lists12 finds the suites of a version after its first answer. If a later version's are known, it
// asks for others only: servers have one list for TLS 1.0 to 1.2.
func (p *protocols) lists12(version uint16, first *hello.Reply) VersionFacts {
	l := &list12{protocols: p, version: version}
	l.facts = VersionFacts{Outcome: Outcome{State: Tested}, Offered: true}
	l.suites = []uint16{first.ServerHello.Suite}
	l.note(first)
	removed := l.suites
	latest := p.older == nil
	most := maxSuites
	switch {
	case p.run.options.All:
		most = len(offered12)
	case !latest:
		removed = append(slices.Clone(p.older), l.suites...)
		l.facts.Inherits = true
		most = maxOlder
	}
	ended := false
	for len(l.suites) < most && !ended {
		ended = !l.next(without(offered12, removed))
		removed = append(removed, l.suites...)
	}
	if !ended && l.facts.Partial == "" {
		l.weak(without(offered12, removed))
		if l.facts.Partial == "" {
			l.facts.Partial = fmt.Sprintf(partialBound, most)
		}
	}
	if latest && (ended && l.facts.Partial == "" || len(l.suites) >= most) {
		p.older = slices.Clone(l.suites)
	}
	if latest {
		l.details()
	}
	l.facts.Suites = names(l.suites, hello.SuiteName)
	l.facts.Groups = names(l.groups, hello.GroupName)
	l.facts.Signatures = names(l.signatures, hello.SchemeName)
	return l.facts
}

// weak asks for one suite of each weak kind of which none is known. Most servers have none, and refuse all
// kinds at once.
func (l *list12) weak(suites []uint16) {
	var kinds [][]uint16
	for _, class := range weakClasses {
		if len(class.of(l.suites)) == 0 && len(class.of(l.older)) == 0 {
			kinds = append(kinds, class.of(suites))
		}
	}
	if !l.next(slices.Concat(kinds...)) {
		return
	}
	for _, kind := range kinds {
		if !slices.ContainsFunc(kind, func(s uint16) bool { return slices.Contains(l.suites, s) }) {
			l.next(kind)
		}
	}
}

// list12 is the state of lists12.
type list12 struct {
	*protocols
	version                    uint16
	facts                      VersionFacts
	suites, groups, signatures []uint16
}

// next asks for one more suite, and reports whether the server has one.
func (l *list12) next(suites []uint16) bool {
	if len(suites) == 0 {
		return false
	}
	a := l.ask(l.run.oldHello(l.version, suites, groups12), hello.AtServerHello)
	if a.err != nil {
		l.facts.Partial = a.err.Error()
		return false
	}
	if a.refused != nil || a.reply.ServerHello.Version != l.version {
		return false
	}
	l.suites = with(l.suites, a.reply.ServerHello.Suite)
	return true
}

// note takes the group, the prime and the signature of a flight.
func (l *list12) note(reply *hello.Reply) {
	k := reply.KeyExchange
	if k == nil {
		return
	}
	if k.Group != 0 {
		l.groups = with(l.groups, k.Group)
	}
	if k.Bits != 0 && (l.facts.PrimeBits == 0 || k.Bits < l.facts.PrimeBits) {
		l.facts.PrimeBits = k.Bits
	}
	if k.Signature != 0 {
		l.signatures = with(l.signatures, k.Signature)
	}
}

// of returns the server's suites with a key exchange, RSA suites first: OpenSSL uses an ECDSA
// certificate only if the client has the key's curve among its groups, so with ECDSA that curve
// can't be removed.
func (l *list12) of(exchange hello.Exchange) (suites []uint16) {
	for _, s := range l.suites {
		if x, _ := hello.SuiteExchange(s); x == exchange {
			suites = append(suites, s)
		}
	}
	slices.SortStableFunc(suites, func(a, b uint16) int { return rank(a) - rank(b) })
	return suites
}

func rank(suite uint16) int {
	if isECDSA(suite) {
		return 1
	}
	return 0
}

// ask12 asks for suites, and reports whether the server took one.
func (l *list12) ask12(h *hello.ClientHello) (*hello.Reply, bool) {
	a := l.ask(h, hello.AtDone)
	if a.err != nil {
		l.facts.Partial = a.err.Error()
		return nil, false
	}
	if a.refused != nil || a.reply.ServerHello.Version != l.version {
		return nil, false
	}
	return a.reply, true
}

// details finds order, groups, the prime's size and weak signatures.
func (l *list12) details() {
	if len(l.suites) > 1 {
		l.order()
	}
	if ecdhe := l.of(hello.ECDHE); len(ecdhe) > 0 && l.version > hello.SSL3 {
		l.curves(ecdhe)
	}
	if dhe := l.of(hello.DHE); len(dhe) > 0 && l.facts.PrimeBits == 0 {
		if reply, ok := l.ask12(l.run.oldHello(l.version, dhe, groups12)); ok {
			l.note(reply)
		}
	}
	if signed := append(l.of(hello.ECDHE), l.of(hello.DHE)...); len(signed) > 0 && l.version == hello.TLS12 {
		h := l.run.oldHello(l.version, signed, groups12)
		h.Signatures = weakSchemes
		if reply, ok := l.ask12(h); ok {
			l.note(reply)
		}
	}
}

// order finds whose order of suites decides.
func (l *list12) order() {
	reply, ok := l.ask12(l.run.oldHello(l.version, reversed(l.suites), groups12))
	if !ok {
		return
	}
	l.facts.Order = order(l.suites, reply.ServerHello.Suite)
	l.note(reply)
	first := slices.IndexFunc(l.suites, isChaCha)
	if l.facts.Order != orderServer || first < 1 {
		return
	}
	reply, ok = l.ask12(l.run.oldHello(l.version, []uint16{l.suites[first], l.suites[0]}, groups12))
	if ok && reply.ServerHello.Suite == l.suites[first] {
		l.facts.Order = orderChaCha
	}
}

// curves finds the groups of elliptic curves by removal, and whether the server's or the client's
// order decides. OpenSSL takes no ECDSA suite if the client lacks the curve of the key. So if the
// client's list without a group is refused, the audit asks again with that group at the end. It
// doesn't ask if all groups are known from TLS 1.3.
func (l *list12) curves(suites []uint16) {
	l.groups = nil // the first answers' groups may be in the order of another list
	var last []uint16
	for len(l.groups) < len(groups12) {
		known := len(l.groups)
		reply, ok := l.ask12(l.run.oldHello(l.version, suites, append(without(groups12, l.groups), last...)))
		if !ok && last == nil && known > 0 && isECDSA(suites[0]) && !l.versions["TLS 1.3"].Offered {
			last = l.groups[known-1:]
			continue
		}
		if !ok {
			break
		}
		if l.note(reply); len(l.groups) == known {
			break
		}
	}
	if len(l.groups) < 2 {
		return
	}
	if reply, ok := l.ask12(l.run.oldHello(l.version, suites, reversed(l.groups))); ok && reply.KeyExchange != nil {
		l.facts.GroupOrder = order(l.groups, reply.KeyExchange.Group)
	}
}
