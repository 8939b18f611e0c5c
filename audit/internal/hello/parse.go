package hello

import (
	"bytes"
	"math/bits"
	"slices"
)

// retryRandom is the random number of a HelloRetryRequest (RFC 8446, section 4.1.3).
var retryRandom = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

// ParseServerHello reads the body of a ServerHello message. Its errors are *SyntaxError.
func ParseServerHello(body []byte) (*ServerHello, error) {
	s := parser{b: body}
	h := &ServerHello{PSK: -1}
	h.LegacyVersion = s.u16()
	h.Version = h.LegacyVersion
	h.Random = s.take(32)
	h.SessionID = s.vector(1)
	h.Suite = s.u16()
	h.Compression = s.u8()
	h.Retry = bytes.Equal(h.Random, retryRandom)
	if s.bad || len(h.SessionID) > 32 {
		return nil, syntax(body, "a malformed ServerHello")
	}
	if len(s.b) > 0 {
		list := parser{b: s.vector(2)}
		if err := s.end("ServerHello"); err != nil {
			return nil, err
		}
		for len(list.b) > 0 {
			e := Extension{Type: list.u16(), Data: list.vector(2)}
			if list.bad {
				return nil, syntax(body, "malformed extensions in a ServerHello")
			}
			if _, twice := h.Extension(e.Type); twice {
				return nil, syntax(body, "the extension %s twice", ExtensionName(e.Type))
			}
			h.Extensions = append(h.Extensions, e)
		}
	}
	for _, e := range h.Extensions {
		if err := h.extension(e); err != nil {
			return nil, err
		}
	}
	if h.Retry && h.Version < TLS13 {
		return nil, syntax(body, "a HelloRetryRequest of %s", VersionName(h.Version))
	}
	return h, nil
}

// extension reads an extension that has a field in ServerHello.
func (h *ServerHello) extension(e Extension) error {
	s := parser{b: e.Data}
	switch e.Type {
	case extVersions:
		h.Version = s.u16()
	case extKeyShare:
		h.Group = s.u16()
		if !h.Retry {
			h.KeyShare = s.vector(2)
		}
	case extCookie:
		h.Cookie = s.vector(2)
	case extALPN:
		list := parser{b: s.vector(2)}
		h.ALPN = string(list.vector(1))
		if err := list.end("ALPN list"); err != nil {
			return err
		}
	case extPSK:
		h.PSK = int(s.u16())
	default:
		return nil
	}
	return s.end(ExtensionName(e.Type))
}

// ParseCertificates reads the body of a Certificate message of TLS 1.2 or earlier.
func ParseCertificates(body []byte) ([][]byte, error) {
	s := parser{b: body}
	list := parser{b: s.vector(3)}
	if err := s.end("Certificate"); err != nil {
		return nil, err
	}
	certificates := [][]byte{}
	for len(list.b) > 0 {
		c := list.vector(3)
		if list.bad {
			return nil, syntax(body, "a malformed Certificate message")
		}
		certificates = append(certificates, c)
	}
	return certificates, nil
}

// ParseKeyExchange reads the body of a ServerKeyExchange message. Of key exchanges with a
// pre-shared key, and of those that aren't in [SuiteExchange], it reads nothing.
func ParseKeyExchange(body []byte, version, suite uint16) (*KeyExchange, error) {
	k := &KeyExchange{}
	s := parser{b: body}
	exchange, signed := SuiteExchange(suite)
	switch exchange {
	case ECDHE:
		switch s.u8() {
		case 3:
			k.Group = s.u16()
		case 1, 2:
			return nil, syntax(body, "an elliptic curve with explicit parameters")
		default:
			return nil, syntax(body, "an unknown type of elliptic curve")
		}
		k.Public = s.vector(1)
	case DHE:
		k.Prime, k.Generator, k.Public = s.vector(2), s.vector(2), s.vector(2)
		k.Bits = bitLen(k.Prime)
	case ExportRSA:
		k.Prime = nil
		k.Bits = bitLen(s.vector(2))
		s.vector(2)
	default:
		return k, nil
	}
	k.Params = body[:len(body)-len(s.b)]
	if signed {
		k.Signed = true
		if version == TLS12 {
			k.Signature = s.u16()
		}
		k.SignatureBytes = s.vector(2)
	}
	return k, s.end("ServerKeyExchange")
}

// bitLen returns the length of a number in bits.
func bitLen(b []byte) int {
	i := slices.IndexFunc(b, func(c byte) bool { return c != 0 })
	if i < 0 {
		return 0
	}
	return 8*(len(b)-i-1) + bits.Len8(b[i])
}

// A parser takes a message apart. If a length is larger than the rest, bad is set, and all later
// values are zero.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) take(n int) []byte {
	if p.bad || n > len(p.b) {
		p.bad, p.b = true, nil
		return nil
	}
	b := p.b[:n:n]
	p.b = p.b[n:]
	return b
}

func (p *parser) number(n int) (v int) {
	for _, c := range p.take(n) {
		v = v<<8 | int(c)
	}
	return v
}

func (p *parser) u8() byte { return byte(p.number(1)) }

func (p *parser) u16() uint16 { return uint16(p.number(2)) }

func (p *parser) vector(size int) []byte { return p.take(p.number(size)) }

// end returns an error if a value was missing, or if bytes are left.
func (p *parser) end(name string) error {
	if p.bad || len(p.b) > 0 {
		return syntax(p.b, "a malformed %s", name)
	}
	return nil
}
