package ossl

import (
	"fmt"
	"net"

	"github.com/ossl-go/ossl/internal/record"
)

const (
	recordHeaderLen = 5
	maxPlaintext    = 16384 // RFC 8446, section 5.1
)

// recordScanner follows the records of the input during a handshake: it knows whether an end of input is one between records.
type recordScanner struct {
	header [recordHeaderLen]byte
	have   int // bytes of header
	left   int // bytes of the record's body to come
}

// scan follows data.
func (s *recordScanner) scan(data []byte) {
	for len(data) > 0 {
		if s.left > 0 {
			n := min(s.left, len(data))
			s.left -= n
			data = data[n:]
			continue
		}
		if s.have == recordHeaderLen {
			s.have = 0
		}
		n := copy(s.header[s.have:], data)
		s.have += n
		data = data[n:]
		if s.have == recordHeaderLen {
			s.left = int(s.header[3])<<8 | int(s.header[4])
		}
	}
}

// atBoundary reports whether the input so far ends between two records.
func (s *recordScanner) atBoundary() bool {
	return s.left == 0 && (s.have == 0 || s.have == recordHeaderLen)
}

// checkFirstRecord refuses input that is no TLS by its first record header, as crypto/tls does: before a length is believed, so
// that a server can answer a plaintext client. alert is what crypto/tls sends first, -1 for none.
func checkFirstRecord(header []byte, conn net.Conn) (alert int, err error) {
	typ, version := header[0], int(header[1])<<8|int(header[2])
	switch {
	case typ == 0x80:
		return alertProtocolVersion, recordHeaderError(header, nil, "unsupported SSLv2 handshake received")
	case typ != record.Alert && typ != record.Handshake || version >= 0x1000:
		return -1, recordHeaderError(header, conn, "first record does not look like a TLS handshake")
	}
	return -1, nil
}

// maxHello is crypto/tls's limit on the length of a ClientHello. libssl's is twice as high.
const maxHello = 65536

// longHello returns the length of the handshake message at the start of data if it is too long for a ClientHello, otherwise 0.
// The first record in data must be complete. Like crypto/tls, we refuse such a message before the rest of it has arrived. If its
// header is split between records, longHello returns 0, and libssl's callbacks refuse the message.
func longHello(data []byte) int {
	const messageHeader = 4
	size := int(data[3])<<8 | int(data[4])
	if data[0] != record.Handshake || size < messageHeader || len(data) < recordHeaderLen+size {
		return 0
	}
	n := int(data[6])<<16 | int(data[7])<<8 | int(data[8])
	if n <= maxHello {
		return 0
	}
	return n
}

func errLongMessage(n int) error {
	return fmt.Errorf("tls: handshake message of length %d bytes exceeds maximum of %d bytes", n, maxHello)
}

// plaintextAlert is the record that carries a fatal alert before any key is in use.
func plaintextAlert(description uint8) []byte {
	return []byte{record.Alert, 3, 3, 0, 2, alertLevelFatal, description}
}

// rewriteAlert changes the alert in an unprotected alert record that ends out, if there is one: libssl chooses alerts, and before
// keys are in use we may choose another.
func rewriteAlert(out []byte, description uint8) {
	n := len(out) - 7
	if n < 0 {
		return
	}
	if r := out[n:]; r[0] == record.Alert && r[1] == 3 && r[3] == 0 && r[4] == 2 && r[5] == alertLevelFatal {
		r[6] = description
	}
}
