package record

import (
	"crypto/tls"
	"fmt"
	"net"
)

const (
	// HeaderLen is the length of a record's header.
	HeaderLen = 5
	// MaxPlaintext is the largest length of a record's plaintext: RFC 8446, section 5.1.
	MaxPlaintext = 16384
	// MaxCiphertext13 is the largest length of a protected TLS 1.3 record: RFC 8446, section 5.2.
	MaxCiphertext13 = MaxPlaintext + 256
	// MaxCiphertext12 is the same for TLS 1.2: RFC 5246, section 6.2.3.
	MaxCiphertext12 = MaxPlaintext + 2048
)

// MaxCiphertext returns the largest length of a protected record.
func MaxCiphertext(version uint16) int {
	if version == tls.VersionTLS13 {
		return MaxCiphertext13
	}
	return MaxCiphertext12
}

// A Header is the header of a record.
type Header struct {
	Type    uint8
	Version int
	Len     int // of the record's body
}

// ParseHeader parses the header at the start of b, which has at least HeaderLen bytes.
func ParseHeader(b []byte) Header {
	return Header{b[0], int(b[1])<<8 | int(b[2]), int(b[3])<<8 | int(b[4])}
}

// HeaderError returns crypto/tls's error for the header at the start of b.
func HeaderError(b []byte, conn net.Conn, msg string) error {
	err := tls.RecordHeaderError{Msg: msg, Conn: conn}
	copy(err.RecordHeader[:], b)
	return err
}

// VersionError returns crypto/tls's error for the header at the start of b, whose version is wrong.
func VersionError(b []byte) error {
	return HeaderError(b, nil, fmt.Sprintf("received record with version %x when expecting version %x",
		ParseHeader(b).Version, tls.VersionTLS12))
}

// LengthError returns crypto/tls's error for the header at the start of b, whose length is too
// large.
func LengthError(b []byte) error {
	return HeaderError(b, nil, fmt.Sprintf("oversized record received with length %d", ParseHeader(b).Len))
}

// A Scanner follows the records of a byte stream. It distinguishes an end of the stream between two
// records from one within a record.
type Scanner struct {
	header [HeaderLen]byte
	have   int // bytes of header
	left   int // bytes of the record's body to come
}

// Scan follows data.
func (s *Scanner) Scan(data []byte) {
	for len(data) > 0 {
		if s.left > 0 {
			n := min(s.left, len(data))
			s.left -= n
			data = data[n:]
			continue
		}
		if s.have == HeaderLen {
			s.have = 0
		}
		n := copy(s.header[s.have:], data)
		s.have += n
		data = data[n:]
		if s.have == HeaderLen {
			s.left = ParseHeader(s.header[:]).Len
		}
	}
}

// AtBoundary reports whether the stream so far ends between two records.
func (s *Scanner) AtBoundary() bool { return s.left == 0 && (s.have == 0 || s.have == HeaderLen) }

// CheckFirst returns crypto/tls's error for a connection's first record header that isn't TLS. It
// ignores the length, so that a server can answer a plaintext client. alert is the alert that
// crypto/tls sends first, or NoAlert.
func CheckFirst(header []byte, conn net.Conn) (alert int, err error) {
	h := ParseHeader(header)
	switch {
	case h.Type == 0x80:
		return AlertProtocolVersion, HeaderError(header, nil, "unsupported SSLv2 handshake received")
	case h.Type != Alert && h.Type != Handshake || h.Version >= 0x1000:
		return NoAlert, HeaderError(header, conn, "first record does not look like a TLS handshake")
	}
	return NoAlert, nil
}

// LongHello returns the length of the handshake message at the start of data if it is too long for
// a ClientHello, otherwise 0. The first record in data must be complete. Like crypto/tls, ossl
// refuses such a message before the rest of it has arrived; libssl's limit is twice as high. If the
// message's header is split between records, LongHello returns 0.
func LongHello(data []byte) int {
	h := ParseHeader(data)
	if h.Type != Handshake || h.Len < messageHeader || len(data) < HeaderLen+h.Len {
		return 0
	}
	n := int(data[6])<<16 | int(data[7])<<8 | int(data[8])
	if n <= maxMessage {
		return 0
	}
	return n
}

// LongMessageError returns crypto/tls's error for a handshake message that is too long.
func LongMessageError(n int) error {
	return fmt.Errorf("tls: handshake message of length %d bytes exceeds maximum of %d bytes", n, maxMessage)
}

// PlaintextAlert returns the record of a fatal alert that is sent before any key is in use.
func PlaintextAlert(description uint8) []byte {
	return []byte{Alert, 3, 3, 0, 2, LevelFatal, description}
}

// ReplaceAlert changes the description in a plaintext record of a fatal alert at the end of out. It
// reports whether there is one.
func ReplaceAlert(out []byte, description uint8) bool {
	n := len(out) - HeaderLen - 2
	if n < 0 {
		return false
	}
	r := out[n:]
	found := r[0] == Alert && r[1] == 3 && r[3] == 0 && r[4] == 2 && r[5] == LevelFatal
	if found {
		r[6] = description
	}
	return found
}

// EndsWithAlert reports whether the last record of data is an alert, as far as its header shows.
// All protected TLS 1.3 records have the same type, so one with the length of an alert counts.
func EndsWithAlert(data []byte) bool {
	const sealedAlert = 2 + 1 + 16
	alert := false
	for len(data) >= HeaderLen {
		h := ParseHeader(data)
		alert = h.Type == Alert || h.Type == ApplicationData && h.Len == sealedAlert
		data = data[min(HeaderLen+h.Len, len(data)):]
	}
	return alert
}
