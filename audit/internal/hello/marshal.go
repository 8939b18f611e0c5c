package hello

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
)

// Types of extensions.
const (
	extServerName          uint16 = 0
	extStatusRequest       uint16 = 5
	extGroups              uint16 = 10
	extPoints              uint16 = 11
	extSignatures          uint16 = 13
	extALPN                uint16 = 16
	extPadding             uint16 = 21
	extEncryptThenMAC      uint16 = 22
	extExtendedMaster      uint16 = 23
	extCompressCertificate uint16 = 27
	extTicket              uint16 = 35
	extPSK                 uint16 = 41
	extEarlyData           uint16 = 42
	extVersions            uint16 = 43
	extCookie              uint16 = 44
	extPSKModes            uint16 = 45
	extKeyShare            uint16 = 51
	extRenegotiation       uint16 = 0xff01
)

const maxFragment = 1 << 14 // bytes of a record

// Marshal returns the ClientHello as one or more records.
func (h *ClientHello) Marshal() ([]byte, error) {
	m, err := h.Message()
	if err != nil {
		return nil, err
	}
	version := h.RecordVersion
	if version == 0 {
		version = TLS10
	}
	return Records(22, version, m), nil
}

// Records returns data in as few records as possible.
func Records(typ byte, version uint16, data []byte) []byte {
	var out []byte
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), maxFragment)
		out = append(out, typ, byte(version>>8), byte(version), byte(n>>8), byte(n))
		out = append(out, data[:n]...)
		data = data[n:]
	}
	return out
}

// Message returns the ClientHello as a handshake message, for a transcript. If Random is nil, each
// call takes another random number.
func (h *ClientHello) Message() ([]byte, error) {
	random := h.Random
	if random == nil {
		random = make([]byte, 32)
		rand.Read(random)
	}
	if len(random) != 32 {
		return nil, fmt.Errorf("hello: a random number of %d bytes", len(random))
	}
	version := h.Version
	if version == 0 {
		version = TLS12
	}
	w := &writer{b: []byte{1, 0, 0, 0}}
	w.u16(version)
	w.b = append(w.b, random...)
	w.vector(1, "session ID", func() { w.b = append(w.b, h.SessionID...) })
	w.vector(2, "cipher suites", func() { w.u16s(h.Suites) })
	compressions := h.Compressions
	if compressions == nil {
		compressions = []byte{0}
	}
	w.vector(1, "compression methods", func() { w.b = append(w.b, compressions...) })
	extensions := h.extensions(w)
	if pad := h.padding(len(w.b), extensions); pad >= 0 {
		i := slices.IndexFunc(extensions, func(e Extension) bool { return e.Type == extPadding })
		extensions[i].Data = make([]byte, pad)
	} else {
		extensions = slices.DeleteFunc(extensions, func(e Extension) bool { return e.Type == extPadding && e.Data == nil })
	}
	if len(extensions) > 0 {
		w.vector(2, "extensions", func() {
			for _, e := range extensions {
				w.u16(e.Type)
				w.vector(2, ExtensionName(e.Type), func() { w.b = append(w.b, e.Data...) })
			}
		})
	}
	if w.err != nil {
		return nil, w.err
	}
	n := len(w.b) - 4
	w.b[1], w.b[2], w.b[3] = byte(n>>16), byte(n>>8), byte(n)
	return w.b, nil
}

// padding returns the length of the padding extension's data, or -1 if the message isn't padded.
func (h *ClientHello) padding(before int, extensions []Extension) int {
	if h.Pad == 0 {
		return -1
	}
	length := before + 2
	for _, e := range extensions {
		if e.Type != extPadding {
			length += 4 + len(e.Data)
		}
	}
	if length >= h.Pad {
		return -1
	}
	return max(h.Pad-length-4, 0)
}

// extensions returns the extensions in the order in which they are sent. The padding extension has
// no data yet.
func (h *ClientHello) extensions(w *writer) []Extension {
	have := h.valued(w)
	var out []Extension
	for _, typ := range h.Order {
		i := slices.IndexFunc(have, func(e Extension) bool { return e.Type == typ })
		if i >= 0 {
			out = append(out, have[i])
			have = slices.Delete(have, i, i+1)
		} else if IsGREASE(typ) {
			out = append(out, Extension{Type: typ})
		}
	}
	out = append(out, have...)
	if h.PSK != nil {
		out = append(out, Extension{extPSK, h.PSK})
	}
	return out
}

// valued returns the extensions that have a value, in the order of the struct.
func (h *ClientHello) valued(w *writer) []Extension {
	var out []Extension
	add := func(present bool, typ uint16, data func(*writer)) {
		if !present {
			return
		}
		b := &writer{}
		if data != nil {
			data(b)
		}
		w.err = errors.Join(w.err, b.err)
		out = append(out, Extension{typ, b.b})
	}
	list := func(name string, size int, values []uint16) func(*writer) {
		return func(b *writer) { b.vector(size, name, func() { b.u16s(values) }) }
	}
	bytes := func(name string, size int, data []byte) func(*writer) {
		return func(b *writer) { b.vector(size, name, func() { b.b = append(b.b, data...) }) }
	}
	add(h.ServerName != "", extServerName, func(b *writer) {
		b.vector(2, "server_name", func() {
			b.b = append(b.b, 0)
			bytes("host_name", 2, []byte(h.ServerName))(b)
		})
	})
	add(h.Groups != nil, extGroups, list("supported_groups", 2, h.Groups))
	add(h.Points != nil, extPoints, bytes("ec_point_formats", 1, h.Points))
	add(h.Signatures != nil, extSignatures, list("signature_algorithms", 2, h.Signatures))
	add(h.ALPN != nil, extALPN, func(b *writer) {
		b.vector(2, "ALPN", func() {
			for _, p := range h.ALPN {
				bytes("protocol name", 1, []byte(p))(b)
			}
		})
	})
	add(h.Versions != nil, extVersions, list("supported_versions", 1, h.Versions))
	add(h.KeyShares != nil, extKeyShare, func(b *writer) {
		b.vector(2, "key_share", func() {
			for _, s := range h.KeyShares {
				b.u16(s.Group)
				bytes("key share", 2, s.Data)(b)
			}
		})
	})
	add(h.PSKModes != nil, extPSKModes, bytes("psk_key_exchange_modes", 1, h.PSKModes))
	add(h.Cookie != nil, extCookie, bytes("cookie", 2, h.Cookie))
	add(h.StatusRequest, extStatusRequest, func(b *writer) { b.b = []byte{1, 0, 0, 0, 0} })
	add(h.ExtendedMaster, extExtendedMaster, nil)
	add(h.EncryptThenMAC, extEncryptThenMAC, nil)
	add(h.Renegotiation, extRenegotiation, func(b *writer) { b.b = []byte{0} })
	add(h.Ticket != nil, extTicket, func(b *writer) { b.b = h.Ticket })
	add(h.CompressCertificate != nil, extCompressCertificate, list("compress_certificate", 1, h.CompressCertificate))
	add(h.EarlyData, extEarlyData, nil)
	out = append(out, h.Extra...)
	add(h.Pad > 0, extPadding, nil)
	return out
}

// MarshalSSL2 returns a ClientHello of SSL 2 that offers the ciphers. The random bytes are the
// challenge: 16 to 32, or nil for 16 random ones.
func MarshalSSL2(ciphers []uint32, random []byte) ([]byte, error) {
	if random == nil {
		random = make([]byte, 16)
		rand.Read(random)
	}
	if len(random) < 16 || len(random) > 32 {
		return nil, fmt.Errorf("hello: an SSL 2 challenge of %d bytes", len(random))
	}
	if len(ciphers) > 1000 {
		return nil, errors.New("hello: more than 1000 SSL 2 ciphers")
	}
	w := &writer{b: []byte{0, 0, 1}}
	w.u16(SSL2)
	w.u16(uint16(3 * len(ciphers)))
	w.u16(0) // no session ID
	w.u16(uint16(len(random)))
	for _, c := range ciphers {
		w.b = append(w.b, byte(c>>16), byte(c>>8), byte(c))
	}
	w.b = append(w.b, random...)
	n := len(w.b) - 2
	w.b[0], w.b[1] = 0x80|byte(n>>8), byte(n)
	return w.b, nil
}

// A writer builds a message. Its err is the first vector that is too long.
type writer struct {
	b   []byte
	err error
}

func (w *writer) u16(v uint16) { w.b = append(w.b, byte(v>>8), byte(v)) }

func (w *writer) u16s(values []uint16) {
	for _, v := range values {
		w.u16(v)
	}
}

// vector writes a length of so many bytes, and then the output of content.
func (w *writer) vector(size int, name string, content func()) {
	start := len(w.b)
	w.b = append(w.b, make([]byte, size)...)
	content()
	n := len(w.b) - start - size
	if n >= 1<<(8*size) && w.err == nil {
		w.err = fmt.Errorf("hello: %s: %d bytes are too long", name, n)
	}
	for i := range size {
		w.b[start+i] = byte(n >> (8 * (size - 1 - i)))
	}
}
