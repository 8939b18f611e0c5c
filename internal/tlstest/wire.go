package tlstest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
)

const recordHeaderLen = 5

// Types of record (RFC 8446, section 5.1).
const (
	TypeChangeCipherSpec = 20
	TypeAlert            = 21
	TypeHandshake        = 22
	TypeApplicationData  = 23
)

// Types of handshake message (RFC 8446, section 4).
const (
	MsgHelloRequest        = 0
	MsgClientHello         = 1
	MsgServerHello         = 2
	MsgNewSessionTicket    = 4
	MsgEncryptedExtensions = 8
	MsgCertificate         = 11
	MsgFinished            = 20
	MsgKeyUpdate           = 24
)

// A Record is one TLS record.
type Record struct {
	Type    byte
	Version uint16
	Payload []byte
	// Opaque reports whether the payload is still encrypted, because its keys were not known.
	Opaque bool
	// Sealed reports whether the record was encrypted on the wire.
	Sealed bool
}

// MakeRecord returns a record's bytes.
func MakeRecord(typ byte, version uint16, payload []byte) []byte {
	b := []byte{typ, byte(version >> 8), byte(version), byte(len(payload) >> 8), byte(len(payload))}
	return append(b, payload...)
}

// An Alert is the content of an alert record.
type Alert struct{ Level, Description byte }

func (a Alert) String() string { return fmt.Sprintf("%d/%d", a.Level, a.Description) }

// A Recording holds the bytes that client and server of a connection wrote, after faults.
type Recording struct {
	mu             sync.Mutex
	client, server bytes.Buffer
}

// Bytes returns a copy of the bytes that an end wrote so far.
func (r *Recording) Bytes(from Role) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.buffer(from).Bytes())
}

func (r *Recording) buffer(from Role) *bytes.Buffer {
	if from == ClientRole {
		return &r.client
	}
	return &r.server
}

// Tap wraps an end so that its Writes are recorded. The wrapper passes CloseWrite on.
func (r *Recording) Tap(from Role, conn net.Conn) net.Conn {
	return &tap{Conn: conn, rec: r, from: from}
}

type tap struct {
	net.Conn
	rec  *Recording
	from Role
}

func (t *tap) Write(p []byte) (int, error) {
	// Recorded first: the peer must not be able to act on bytes that the recording doesn't have
	// yet.
	t.rec.mu.Lock()
	t.rec.buffer(t.from).Write(p)
	t.rec.mu.Unlock()
	return t.Conn.Write(p)
}

func (t *tap) CloseWrite() error {
	if w, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return t.Conn.Close()
}

// SplitRecords cuts a stream into records. The rest is a part of a record.
func SplitRecords(b []byte) (records []Record, rest []byte) {
	for len(b) >= recordHeaderLen {
		n := int(binary.BigEndian.Uint16(b[3:]))
		if len(b) < recordHeaderLen+n {
			break
		}
		records = append(records, Record{
			Type:    b[0],
			Version: binary.BigEndian.Uint16(b[1:]),
			Payload: bytes.Clone(b[recordHeaderLen : recordHeaderLen+n]),
		})
		b = b[recordHeaderLen+n:]
	}
	return records, b
}

// Messages returns the complete handshake messages in the plaintext of records.
func Messages(records []Record) (messages [][]byte) {
	var b []byte
	for _, r := range records {
		if r.Type == TypeHandshake && !r.Opaque {
			b = append(b, r.Payload...)
		}
	}
	for len(b) >= 4 {
		n := 4 + int(b[1])<<16 + int(b[2])<<8 + int(b[3])
		if len(b) < n {
			break
		}
		messages = append(messages, b[:n])
		b = b[n:]
	}
	return messages
}

// Alerts returns the alerts in the plaintext of records.
func Alerts(records []Record) (alerts []Alert) {
	for _, r := range records {
		if r.Type == TypeAlert && !r.Opaque && len(r.Payload) >= 2 {
			alerts = append(alerts, Alert{r.Payload[0], r.Payload[1]})
		}
	}
	return alerts
}

// hello holds the fields of a ClientHello or ServerHello that deciphering needs.
type hello struct {
	random  []byte
	suite   uint16 // ServerHello only
	version uint16 // ServerHello only: the one chosen
	retry   bool   // it is a HelloRetryRequest
}

// helloRetryRandom is SHA-256("HelloRetryRequest") (RFC 8446, section 4.1.3).
var helloRetryRandom = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

func parseHello(m []byte) (h hello, ok bool) {
	if len(m) < 4+2+32+1 {
		return h, false
	}
	h.version = binary.BigEndian.Uint16(m[4:])
	h.random = m[6:38]
	h.retry = bytes.Equal(h.random, helloRetryRandom)
	if m[0] != MsgServerHello {
		return h, m[0] == MsgClientHello
	}
	b := m[38:]
	if len(b) < 1+int(b[0])+3 {
		return h, false
	}
	b = b[1+int(b[0]):]
	h.suite = binary.BigEndian.Uint16(b)
	b = b[3:]
	if len(b) < 2 {
		return h, true
	}
	for b = b[2:]; len(b) >= 4; {
		id, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if len(b) < 4+n {
			return h, false
		}
		if id == 43 && n == 2 { // supported_versions
			h.version = binary.BigEndian.Uint16(b[4:])
		}
		b = b[4+n:]
	}
	return h, true
}

// Sized16 returns b behind its length in two bytes.
func Sized16(b []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
}

// Shape describes an end's records as they look without its keys: by their types and, except for
// handshake messages, by their length or, in the clear, their bytes.
func Shape(records []Record) (s []string) {
	for _, r := range records {
		switch r.Type {
		case TypeHandshake:
			s = append(s, "handshake")
		case TypeApplicationData:
			s = append(s, fmt.Sprintf("%#x, %d bytes", r.Version, len(r.Payload)))
		default:
			s = append(s, fmt.Sprintf("%#x, type %d: %x", r.Version, r.Type, r.Payload))
		}
	}
	return s
}
