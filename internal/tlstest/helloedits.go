package tlstest

import (
	"crypto/tls"
	"encoding/binary"
)

// Numbers of extensions (RFC 8446, section 4.2).
const (
	ExtServerName          = 0
	ExtPointFormats        = 11
	ExtSupportedGroups     = 10
	ExtSignatureAlgorithms = 13
	ExtALPN                = 16
	ExtSupportedVersions   = 43
	ExtKeyShare            = 51
)

// EditExtension returns a fault that changes the body of one extension of a ClientHello in its
// first record; a nil result removes the extension.
func EditExtension(id uint16, edit func(body []byte) []byte) func() Fault {
	return EditExtensions(func(i uint16, body []byte) []byte {
		if i == id {
			return edit(body)
		}
		return body
	})
}

func EditExtensions(edit func(id uint16, body []byte) []byte) func() Fault {
	return EditHello(func(fixed, extensions []byte) ([]byte, []byte) {
		var out []byte
		for len(extensions) >= 4 {
			i, n := binary.BigEndian.Uint16(extensions), int(binary.BigEndian.Uint16(extensions[2:]))
			if body := edit(i, extensions[4:4+n:4+n]); body != nil {
				out = binary.BigEndian.AppendUint16(out, i)
				out = binary.BigEndian.AppendUint16(out, uint16(len(body)))
				out = append(out, body...)
			}
			extensions = extensions[4+n:]
		}
		return fixed, out
	})
}

// EditHello returns a fault that changes a ClientHello: the part before the extensions (without the
// message's header), and the extensions.
func EditHello(edit func(fixed, extensions []byte) ([]byte, []byte)) func() Fault {
	return func() Fault {
		return Records(func(i int, record []byte) [][]byte {
			if i != 0 {
				return [][]byte{record}
			}
			m := record[5+4:]
			at := 2 + 32
			at += 1 + int(m[at])                           // session id
			at += 2 + int(binary.BigEndian.Uint16(m[at:])) // suites
			at += 1 + int(m[at])                           // compression methods
			fixed, extensions := edit(m[:at:at], m[at+2:])
			body := append([]byte(nil), fixed...)
			body = binary.BigEndian.AppendUint16(body, uint16(len(extensions)))
			body = append(body, extensions...)
			n := len(body)
			body = append([]byte{MsgClientHello, byte(n >> 16), byte(n >> 8), byte(n)}, body...)
			return [][]byte{MakeRecord(TypeHandshake, tls.VersionTLS10, body)}
		})
	}
}

// List16 is a list of 16-bit numbers with its length in front.
func List16(ids ...uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(2*len(ids)))
	for _, id := range ids {
		b = binary.BigEndian.AppendUint16(b, id)
	}
	return b
}
