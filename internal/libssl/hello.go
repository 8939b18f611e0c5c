package libssl

import "github.com/ossl-go/ossl/internal/wire"

// Hellos are those parts of a handshake's hellos that explain its failure.
type Hellos struct {
	Client  []byte // of a server: the input of ParseClientHello, or nil
	Version uint16 // in the ServerHello, whose version and suite libssl may have refused; 0 if there is none
	Suite   uint16
}

// A ClientHello has a client's offers, in the client's order. A list is nil if the client has sent
// none, and empty if it is empty or malformed.
type ClientHello struct {
	Version          uint16   // legacy_version: RFC 8446, section 4.1.2
	Versions         []uint16 // supported_versions
	CipherSuites     []uint16
	Groups           []uint16
	SignatureSchemes []uint16
	Protocols        []string // of ALPN, the first MaxProtocols
	MoreProtocols    int      // the number of the others
	PSKModes         []byte   // psk_key_exchange_modes
}

// MaxProtocols is the number of protocols that ParseClientHello keeps. A hello can have 32,000.
const MaxProtocols = 8

// The numbers of extensions that ParseClientHello reads: RFC 8446, section 4.2.
const (
	extensionGroups     = 10
	extensionSignatures = 13
	extensionProtocols  = 16
	extensionVersions   = 43
	extensionPSKModes   = 45
)

// ParseClientHello parses the parts of a ClientHello that hello_facts in callbacks.c puts together:
// the version, the suites after their length, and extensions, each after its number in a byte and
// its length. libssl has checked the structure of the message but not the extensions' bodies.
func ParseClientHello(parts []byte) (h ClientHello, ok bool) {
	r := wire.Reader{Rest: parts}
	h.Version = uint16(r.Number(2))
	h.CipherSuites = numbers(r.Vector(2))
	for len(r.Rest) > 0 {
		number, body := r.Number(1), r.List(2)
		switch number {
		case extensionGroups:
			h.Groups = numbers(body.Vector(2))
		case extensionSignatures:
			h.SignatureSchemes = numbers(body.Vector(2))
		case extensionProtocols:
			h.Protocols, h.MoreProtocols = []string{}, 0
			for list := body.List(2); len(list.Rest) > 0; {
				switch name := list.Vector(1); {
				case list.Failed:
				case len(h.Protocols) == MaxProtocols:
					h.MoreProtocols++
				default:
					h.Protocols = append(h.Protocols, string(name))
				}
			}
		case extensionVersions:
			h.Versions = numbers(body.Vector(1))
		case extensionPSKModes:
			h.PSKModes = body.Vector(1)
		}
	}
	return h, !r.Failed
}

// numbers returns the 16-bit numbers in b.
func numbers(b []byte) []uint16 {
	list := make([]uint16, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		list = append(list, uint16(b[0])<<8|uint16(b[1]))
	}
	return list
}
