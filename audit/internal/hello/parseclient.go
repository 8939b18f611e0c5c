package hello

import (
	"slices"

	"github.com/ossl-go/ossl/audit/internal/wire"
)

// ParseClientHello reads a ClientHello message of SSL 3 to TLS 1.3, with its header. Its Order has
// all extensions, and Extra those that have no field, and those whose data Message would write
// differently. Its errors are *SyntaxError.
func ParseClientHello(message []byte) (*ClientHello, error) {
	s := wire.Reader{Rest: message}
	if s.Uint8() != 1 {
		return nil, syntax(message, "not a ClientHello")
	}
	s = s.List(3)
	h := &ClientHello{Version: s.Uint16(), Random: s.Bytes(32), SessionID: s.Vector(1)}
	suites := s.Vector(2)
	h.Compressions = s.Vector(1)
	var ok bool
	if h.Suites, ok = numbers(suites); !ok || s.Failed || h.Version == 0 { // a Version of 0 stands for another one
		return nil, syntax(message, "a malformed ClientHello")
	}
	if len(s.Rest) == 0 {
		return h, nil
	}
	list := s.List(2)
	if err := end(s, "ClientHello"); err != nil {
		return nil, err
	}
	for len(list.Rest) > 0 {
		typ, data := list.Uint16(), list.Vector(2)
		if list.Failed {
			return nil, syntax(message, "malformed extensions in a ClientHello")
		}
		if slices.Contains(h.Order, typ) {
			return nil, syntax(message, "the extension %s twice", ExtensionName(typ))
		}
		if typ == extPSK && len(list.Rest) == 0 {
			h.PSK = data
			continue
		}
		h.Order = append(h.Order, typ)
		if !h.take(typ, data) && !(IsGREASE(typ) && len(data) == 0) {
			h.Extra = append(h.Extra, Extension{typ, data})
		}
	}
	return h, nil
}

// numbers returns the 16-bit numbers of a list, and false if a byte is left.
func numbers(b []byte) (values []uint16, ok bool) {
	values = []uint16{}
	for ; len(b) >= 2; b = b[2:] {
		values = append(values, uint16(b[0])<<8|uint16(b[1]))
	}
	return values, len(b) == 0
}

// take gives an extension to its field, if there is one, if it is empty, and if the field
// would write the same data.
func (h *ClientHello) take(typ uint16, data []byte) bool {
	s := wire.Reader{Rest: data}
	list := func(size int, to *[]uint16) bool {
		values, ok := numbers(s.Vector(size))
		if ok = ok && s.Done() && *to == nil; ok {
			*to = values
		}
		return ok
	}
	bytes := func(size int, to *[]byte) bool {
		b := s.Vector(size)
		ok := s.Done() && *to == nil
		if ok {
			*to = append([]byte{}, b...)
		}
		return ok
	}
	flag := func(want string, to *bool) bool {
		ok := string(data) == want && !*to
		*to = *to || ok
		return ok
	}
	switch typ {
	case extServerName:
		names := s.List(2)
		kind, name := names.Uint8(), names.Vector(2)
		ok := s.Done() && names.Done() && kind == 0 && len(name) > 0 && h.ServerName == ""
		if ok {
			h.ServerName = string(name)
		}
		return ok
	case extGroups:
		return list(2, &h.Groups)
	case extPoints:
		return bytes(1, &h.Points)
	case extSignatures:
		return list(2, &h.Signatures)
	case extVersions:
		return list(1, &h.Versions)
	case extCompressCertificate:
		return list(1, &h.CompressCertificate)
	case extPSKModes:
		return bytes(1, &h.PSKModes)
	case extCookie:
		return bytes(2, &h.Cookie)
	case extStatusRequest:
		return flag("\x01\x00\x00\x00\x00", &h.StatusRequest)
	case extExtendedMaster:
		return flag("", &h.ExtendedMaster)
	case extEncryptThenMAC:
		return flag("", &h.EncryptThenMAC)
	case extRenegotiation:
		return flag("\x00", &h.Renegotiation)
	case extEarlyData:
		return flag("", &h.EarlyData)
	case extTicket:
		if h.Ticket != nil {
			return false
		}
		h.Ticket = append([]byte{}, data...)
		return true
	case extALPN, extKeyShare:
		list := s.List(2)
		return s.Done() && h.takeList(typ, list)
	}
	return false
}

// takeList is take for the extensions with lists of vectors.
func (h *ClientHello) takeList(typ uint16, s wire.Reader) bool {
	if typ == extALPN {
		protocols := []string{}
		for len(s.Rest) > 0 {
			protocols = append(protocols, string(s.Vector(1)))
		}
		if s.Failed || h.ALPN != nil {
			return false
		}
		h.ALPN = protocols
		return true
	}
	shares := []KeyShare{}
	for len(s.Rest) > 0 {
		shares = append(shares, KeyShare{s.Uint16(), s.Vector(2)})
	}
	if s.Failed || h.KeyShares != nil {
		return false
	}
	h.KeyShares = shares
	return true
}
