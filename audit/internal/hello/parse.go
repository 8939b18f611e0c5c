package hello

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/ossl-go/ossl/audit/internal/wire"
)

// retryRandom is the random number of a HelloRetryRequest (RFC 8446, section 4.1.3).
var retryRandom = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

// ParseServerHello reads the body of a ServerHello message. Its errors are *SyntaxError.
func ParseServerHello(body []byte) (*ServerHello, error) {
	s := wire.Reader{Rest: body}
	h := &ServerHello{PSK: -1}
	h.LegacyVersion = s.Uint16()
	h.Version = h.LegacyVersion
	h.Random = s.Bytes(32)
	h.SessionID = s.Vector(1)
	h.Suite = s.Uint16()
	h.Compression = s.Uint8()
	h.Retry = bytes.Equal(h.Random, retryRandom)
	if s.Failed || len(h.SessionID) > 32 {
		return nil, syntax(body, "a malformed ServerHello")
	}
	if len(s.Rest) > 0 {
		var err error
		if h.Extensions, err = ReadExtensions(&s); err != nil {
			return nil, err
		}
		if err := end(s, "ServerHello"); err != nil {
			return nil, err
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

// ReadExtensions takes a list of extensions from a server's message. Its errors are *SyntaxError.
func ReadExtensions(r *wire.Reader) (all []Extension, err error) {
	message := r.Rest
	list := r.List(2)
	for len(list.Rest) > 0 {
		e := Extension{Type: list.Uint16(), Data: list.Vector(2)}
		if list.Failed {
			break
		}
		if slices.ContainsFunc(all, func(o Extension) bool { return o.Type == e.Type }) {
			return nil, syntax(message, "the extension %s twice", ExtensionName(e.Type))
		}
		if all = append(all, e); len(all) > maxExtensions {
			return nil, syntax(message, "more than %d extensions", maxExtensions)
		}
	}
	if list.Failed {
		return nil, syntax(message, "a malformed list of extensions")
	}
	return all, nil
}

const maxExtensions = 64

// extension reads an extension that has a field in ServerHello.
func (h *ServerHello) extension(e Extension) error {
	s := wire.Reader{Rest: e.Data}
	switch e.Type {
	case extVersions:
		h.Version = s.Uint16()
	case extKeyShare:
		h.Group = s.Uint16()
		if !h.Retry {
			h.KeyShare = s.Vector(2)
		}
	case extCookie:
		if h.Cookie = s.Vector(2); len(h.Cookie) == 0 {
			s.Failed = true
		}
	case extALPN:
		list := s.List(2)
		h.ALPN = string(list.Vector(1))
		if err := end(list, "ALPN list"); err != nil {
			return err
		}
	case extPSK:
		h.PSK = int(s.Uint16())
	default:
		return nil
	}
	return end(s, ExtensionName(e.Type))
}

// ParseCertificates reads the body of a Certificate message, as it is up to TLS 1.2.
func ParseCertificates(body []byte) ([][]byte, error) {
	s := wire.Reader{Rest: body}
	list := s.List(3)
	if err := end(s, "Certificate"); err != nil {
		return nil, err
	}
	certificates := [][]byte{}
	for len(list.Rest) > 0 {
		c := list.Vector(3)
		if list.Failed {
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
	s := wire.Reader{Rest: body}
	exchange, signed := SuiteExchange(suite)
	switch exchange {
	case ECDHE:
		switch s.Uint8() {
		case 3:
			k.Group = s.Uint16()
		case 1, 2:
			return nil, syntax(body, "an elliptic curve with explicit parameters")
		default:
			return nil, syntax(body, "an unknown type of elliptic curve")
		}
		k.Public = s.Vector(1)
	case DHE:
		k.Prime, k.Generator, k.Public = s.Vector(2), s.Vector(2), s.Vector(2)
		k.Bits = bitLen(k.Prime)
	case ExportRSA:
		k.Prime = nil
		k.Bits = bitLen(s.Vector(2))
		s.Vector(2)
	default:
		return k, nil
	}
	k.Params = body[:len(body)-len(s.Rest)]
	if signed {
		k.Signed = true
		if version == TLS12 {
			k.Signature = s.Uint16()
		}
		k.SignatureBytes = s.Vector(2)
	}
	return k, end(s, "ServerKeyExchange")
}

// bitLen returns the length of a number in bits.
func bitLen(b []byte) int {
	i := slices.IndexFunc(b, func(c byte) bool { return c != 0 })
	if i < 0 {
		return 0
	}
	return 8*(len(b)-i-1) + bits.Len8(b[i])
}

// end returns an error if a part was missing, or if bytes are left.
func end(r wire.Reader, name string) error {
	if !r.Done() {
		return syntax(r.Rest, "a malformed %s", name)
	}
	return nil
}
