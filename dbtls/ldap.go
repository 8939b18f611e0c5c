package dbtls

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// DialLDAP connects to an LDAP server with StartTLS (RFC 4511, section 4.14). Servers of ldaps (port
// 636) need [Dialer.DialTLS].
func (d *Dialer) DialLDAP(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr, "LDAP", func(_ context.Context, p *prelude) (net.Conn, error) {
		p.step = "StartTLS"
		if err := p.send([]byte(startTLSRequest)); err != nil {
			return nil, err
		}
		message, err := p.ldapMessage()
		if err != nil {
			return nil, err
		}
		return p.conn, parseStartTLS(message)
	})
}

// startTLSRequest is an LDAPMessage with the number 1: an ExtendedRequest with the name of StartTLS.
const startTLSRequest = "\x30\x1d\x02\x01\x01\x77\x18\x80\x16" + "1.3.6.1.4.1.1466.20037"

// Tags of BER.
const (
	tagInteger          = 0x02
	tagOctetString      = 0x04
	tagEnumerated       = 0x0a
	tagSequence         = 0x30
	tagExtendedResponse = 0x78 // [APPLICATION 24], constructed
)

var errNotLDAP = errors.New("the server's answer is not an ExtendedResponse of LDAP")

// ldapMessage reads the value of an LDAPMessage.
func (p *prelude) ldapMessage() ([]byte, error) {
	header, err := p.full(2)
	if err != nil {
		return nil, err
	}
	if header[0] != tagSequence {
		return nil, errNotLDAP
	}
	size := int(header[1])
	if size >= 0x80 { // RFC 4511, section 5.1, excludes the indefinite form 0x80
		long, err := p.full(size & 0x7f)
		if err != nil {
			return nil, err
		}
		var ok bool
		if size, ok = longSize(long); !ok {
			return nil, errNotLDAP
		}
	}
	if size > maxPrelude {
		return nil, fmt.Errorf("the server's answer has %d bytes", size)
	}
	return p.full(size)
}

// longSize returns the number in the long form of a length.
func longSize(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 4 {
		return 0, false
	}
	size := 0
	for _, c := range b {
		size = size<<8 | int(c)
	}
	return size, size >= 0
}

// parseStartTLS returns nil if the LDAPMessage of the value message grants StartTLS.
func parseStartTLS(message []byte) error {
	number, rest, ok1 := cutBER(message, tagInteger)
	response, _, ok2 := cutBER(rest, tagExtendedResponse) // after it there may be controls
	code, rest, ok3 := cutBER(response, tagEnumerated)
	_, rest, ok4 := cutBER(rest, tagOctetString) // matchedDN
	diagnosis, _, ok5 := cutBER(rest, tagOctetString)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || len(code) != 1 {
		return errNotLDAP
	}
	if len(number) != 1 || number[0] != 1 { // 0 is a notice of disconnection, for example
		return fmt.Errorf("the server sent message %x instead of an answer, with result code %d: %s", number, code[0], quote(diagnosis))
	}
	switch code[0] {
	case 0:
		return nil
	case 2: // protocolError: the server doesn't know StartTLS (RFC 4511, section 4.14.2)
		return fmt.Errorf("%w: %s", ErrNoTLS, quote(diagnosis))
	}
	return fmt.Errorf("the server refused with result code %d: %s", code[0], quote(diagnosis))
}

// cutBER splits a value with the tag off b.
func cutBER(b []byte, tag byte) (value, rest []byte, ok bool) {
	if len(b) < 2 || b[0] != tag {
		return nil, nil, false
	}
	size, b := int(b[1]), b[2:]
	if size >= 0x80 {
		n := size & 0x7f
		if n > len(b) {
			return nil, nil, false
		}
		if size, ok = longSize(b[:n]); !ok {
			return nil, nil, false
		}
		b = b[n:]
	}
	if size > len(b) {
		return nil, nil, false
	}
	return b[:size], b[size:], true
}
