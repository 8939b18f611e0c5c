package audit

import (
	"encoding/binary"
	"errors"
	"io"
)

// ldap is RFC 4511, section 4.14.
func (d *dialogue) ldap() error {
	const request = "\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037"
	if err := d.send(request); err != nil {
		return err
	}
	tag, message, err := d.ber()
	if err != nil {
		return err
	}
	_, _, rest, ok := cutBER(message) // the message's number
	kind, response, _, ok2 := cutBER(rest)
	code, result, rest, ok3 := cutBER(response)
	if tag != 0x30 || !ok || !ok2 || !ok3 || kind != 0x78 || code != 0x0a || len(result) != 1 {
		return d.refused("the server's answer is not an ExtendedResponse of LDAP")
	}
	if result[0] == 0 {
		return nil
	}
	_, _, rest, _ = cutBER(rest) // the matched name
	_, diagnosis, _, _ := cutBER(rest)
	if result[0] == 51 || result[0] == 52 { // busy, unavailable
		return errors.New("LDAP: the server is busy: " + quote(string(diagnosis)))
	}
	return d.refused("the server answered with code %d, %s", result[0], quote(string(diagnosis)))
}

// ber reads one value of BER with a definite length.
func (d *dialogue) ber() (tag byte, value []byte, err error) {
	header := make([]byte, 2, 6)
	if _, err := io.ReadFull(d.in, header); err != nil {
		return 0, nil, unexpected(err)
	}
	size := int(header[1])
	if size >= 0x80 {
		long := make([]byte, size&0x7f)
		if len(long) == 0 || len(long) > 4 {
			return 0, nil, d.refused("the server's answer is not LDAP")
		}
		if _, err := io.ReadFull(d.in, long); err != nil {
			return 0, nil, unexpected(err)
		}
		size = 0
		for _, b := range long {
			size = size<<8 | int(b)
		}
	}
	if size > startTLSBytes {
		return 0, nil, d.refused("the server's answer has %d bytes", size)
	}
	value = make([]byte, size)
	_, err = io.ReadFull(d.in, value)
	return header[0], value, unexpected(err)
}

// cutBER splits the first value of BER off b.
func cutBER(b []byte) (tag byte, value, rest []byte, ok bool) {
	if len(b) < 2 {
		return 0, nil, nil, false
	}
	tag, size, b := b[0], uint64(b[1]), b[2:]
	if size >= 0x80 {
		n := int(size & 0x7f)
		if n == 0 || n > 4 || len(b) < n {
			return 0, nil, nil, false
		}
		size = 0
		for _, c := range b[:n] {
			size = size<<8 | uint64(c)
		}
		b = b[n:]
	}
	if size > uint64(len(b)) {
		return 0, nil, nil, false
	}
	return tag, b[:size], b[size:], true
}

// postgres is SSLRequest: PostgreSQL's documentation, "Message Flow".
func (d *dialogue) postgres() error {
	if err := d.send("\x00\x00\x00\x08\x04\xd2\x16\x2f"); err != nil {
		return err
	}
	answer, err := d.in.ReadByte()
	switch {
	case err != nil:
		return unexpected(err)
	case answer == 'S':
		return nil
	case answer == 'N':
		return d.refused("the server has no TLS")
	case answer == 'E':
		return d.refused("the server answered with an error")
	}
	return d.refused("the server answered with byte %#02x", answer)
}

// Capabilities of MySQL's protocol.
const (
	mysqlProtocol41 = 1 << 9
	mysqlTLS        = 1 << 11
	mysqlSecure     = 1 << 15
)

// mysql is SSLRequest: MySQL's "Connection Phase". MariaDB's is the same.
func (d *dialogue) mysql() error {
	header := make([]byte, 4)
	if _, err := io.ReadFull(d.in, header); err != nil {
		return unexpected(err)
	}
	size := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
	if size == 0 || size > startTLSBytes-4 || header[3] != 0 {
		return d.refused("the server's greeting is not MySQL's")
	}
	greeting := make([]byte, size)
	if _, err := io.ReadFull(d.in, greeting); err != nil {
		return unexpected(err)
	}
	if err := d.greeted(); err != nil {
		return err
	}
	if greeting[0] == 0xff { // blocked host, too many connections
		return errors.New("MySQL: the server answered " + quote(string(greeting[min(3, size):])))
	}
	capabilities, ok := mysqlCapabilities(greeting)
	if !ok {
		return d.refused("the server's greeting is not MySQL's")
	}
	if capabilities&mysqlTLS == 0 {
		return d.refused("the server has no TLS")
	}
	request := make([]byte, 36)
	request[0], request[3] = 32, 1
	binary.LittleEndian.PutUint32(request[4:], mysqlProtocol41|mysqlTLS|mysqlSecure)
	binary.LittleEndian.PutUint32(request[8:], 1<<24)
	request[12] = 45 // utf8mb4
	_, err := d.conn.Write(request)
	return err
}

// mysqlCapabilities returns the lower capabilities of a greeting. Before them come version 10, the
// server's version with a zero byte at its end, the connection's number, 8 bytes of a nonce and a
// zero byte.
func mysqlCapabilities(greeting []byte) (uint16, bool) {
	if greeting[0] != 10 {
		return 0, false
	}
	for i, b := range greeting[1:] {
		if b == 0 {
			rest := greeting[1+i+1:]
			if len(rest) < 4+8+1+2 {
				return 0, false
			}
			return binary.LittleEndian.Uint16(rest[13:]), true
		}
	}
	return 0, false
}
