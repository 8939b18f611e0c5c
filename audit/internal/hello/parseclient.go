package hello

import "slices"

// ParseClientHello reads a ClientHello message of SSL 3 to TLS 1.3, with its header. Its Order has
// all extensions, and Extra those that have no field, and those whose data Message would write
// differently. Its errors are *SyntaxError.
func ParseClientHello(message []byte) (*ClientHello, error) {
	s := parser{b: message}
	if s.u8() != 1 {
		return nil, syntax(message, "not a ClientHello")
	}
	s = parser{b: s.vector(3), bad: s.bad}
	h := &ClientHello{Version: s.u16(), Random: s.take(32), SessionID: s.vector(1)}
	suites := s.vector(2)
	h.Compressions = s.vector(1)
	var ok bool
	if h.Suites, ok = numbers(suites); !ok || s.bad || h.Version == 0 { // a Version of 0 stands for another one
		return nil, syntax(message, "a malformed ClientHello")
	}
	if len(s.b) == 0 {
		return h, nil
	}
	list := parser{b: s.vector(2)}
	if err := s.end("ClientHello"); err != nil {
		return nil, err
	}
	for len(list.b) > 0 {
		typ, data := list.u16(), list.vector(2)
		if list.bad {
			return nil, syntax(message, "malformed extensions in a ClientHello")
		}
		if slices.Contains(h.Order, typ) {
			return nil, syntax(message, "the extension %s twice", ExtensionName(typ))
		}
		if typ == extPSK && len(list.b) == 0 {
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
	s := parser{b: data}
	list := func(size int, to *[]uint16) bool {
		values, ok := numbers(s.vector(size))
		if ok = ok && s.end("") == nil && *to == nil; ok {
			*to = values
		}
		return ok
	}
	bytes := func(size int, to *[]byte) bool {
		b := s.vector(size)
		ok := s.end("") == nil && *to == nil
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
		names := parser{b: s.vector(2)}
		kind, name := names.u8(), names.vector(2)
		ok := s.end("") == nil && names.end("") == nil && kind == 0 && len(name) > 0 && h.ServerName == ""
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
		return h.takeList(typ, parser{b: s.vector(2), bad: s.end("") != nil})
	}
	return false
}

// takeList is take for the extensions with lists of vectors.
func (h *ClientHello) takeList(typ uint16, s parser) bool {
	if typ == extALPN {
		protocols := []string{}
		for len(s.b) > 0 {
			protocols = append(protocols, string(s.vector(1)))
		}
		if s.bad || h.ALPN != nil {
			return false
		}
		h.ALPN = protocols
		return true
	}
	shares := []KeyShare{}
	for len(s.b) > 0 {
		shares = append(shares, KeyShare{s.u16(), s.vector(2)})
	}
	if s.bad || h.KeyShares != nil {
		return false
	}
	h.KeyShares = shares
	return true
}
