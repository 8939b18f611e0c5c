package libssl

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
}

// MaxProtocols is the number of protocols that ParseClientHello keeps. A hello can have 32,000.
const MaxProtocols = 8

// The numbers of extensions that ParseClientHello reads: RFC 8446, section 4.2.
const (
	extensionGroups     = 10
	extensionSignatures = 13
	extensionProtocols  = 16
	extensionVersions   = 43
)

// ParseClientHello parses the parts of a ClientHello that hello_facts in callbacks.c puts together:
// the version, the suites after their length, and extensions, each after its number in a byte and
// its length. libssl has checked the structure of the message but not the extensions' bodies.
func ParseClientHello(parts []byte) (h ClientHello, ok bool) {
	if len(parts) < 2 {
		return h, false
	}
	h.Version = uint16(parts[0])<<8 | uint16(parts[1])
	suites, rest, ok := vector(parts[2:], 2)
	if !ok {
		return h, false
	}
	h.CipherSuites = numbers(suites)
	for len(rest) > 0 {
		var body []byte
		number := rest[0]
		if body, rest, ok = vector(rest[1:], 2); !ok {
			return h, false
		}
		switch number {
		case extensionGroups:
			list, _, _ := vector(body, 2)
			h.Groups = numbers(list)
		case extensionSignatures:
			list, _, _ := vector(body, 2)
			h.SignatureSchemes = numbers(list)
		case extensionProtocols:
			list, _, _ := vector(body, 2)
			h.Protocols, h.MoreProtocols = []string{}, 0
			for len(list) > 0 {
				var name []byte
				if name, list, ok = vector(list, 1); !ok {
					break
				}
				if len(h.Protocols) == MaxProtocols {
					h.MoreProtocols++
					continue
				}
				h.Protocols = append(h.Protocols, string(name))
			}
		case extensionVersions:
			list, _, _ := vector(body, 1)
			h.Versions = numbers(list)
		}
	}
	return h, true
}

// vector returns the bytes at the start of b that follow their length, which is a number of size
// bytes. Without all of them, ok is false and there are none.
func vector(b []byte, size int) (v, rest []byte, ok bool) {
	n := 0
	for i := range size {
		if i >= len(b) {
			return nil, nil, false
		}
		n = n<<8 | int(b[i])
	}
	if b = b[size:]; n > len(b) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// numbers returns the 16-bit numbers in b.
func numbers(b []byte) []uint16 {
	list := make([]uint16, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		list = append(list, uint16(b[0])<<8|uint16(b[1]))
	}
	return list
}
