package zoo

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/ossl-go/ossl/audit/internal/wire"
)

// An offer is a client's ClientHello, as far as the scripted servers look at it.
type offer struct {
	version    uint16
	session    []byte
	methods    []byte // of compression
	suites     []uint16
	extensions map[uint16][]byte
	ssl2       []byte // a ClientHello of SSL 2, without the header
}

var errNotHello = errors.New("zoo: not a ClientHello")

// readOffer reads a ClientHello.
func readOffer(conn net.Conn) (*offer, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	if head[0]&0x80 != 0 && head[2] == 1 { // SSL 2
		body := make([]byte, int(head[0]&0x7f)<<8+int(head[1]))
		copy(body, head[2:])
		if len(body) < 9 {
			return nil, errNotHello
		}
		_, err := io.ReadFull(conn, body[3:])
		return &offer{ssl2: body}, err
	}
	var message []byte
	for len(message) < 4 || len(message) < 4+int(message[1])<<16+int(message[2])<<8+int(message[3]) {
		if len(message) > 0 {
			if _, err := io.ReadFull(conn, head); err != nil {
				return nil, err
			}
		}
		if head[0] != 22 || len(message) > 1<<17 {
			return nil, errNotHello
		}
		part := make([]byte, binary.BigEndian.Uint16(head[3:]))
		if _, err := io.ReadFull(conn, part); err != nil {
			return nil, err
		}
		message = append(message, part...)
	}
	return parseOffer(message[4:])
}

func parseOffer(b []byte) (*offer, error) {
	o := &offer{extensions: map[uint16][]byte{}}
	r := wire.Reader{Rest: b}
	o.version = r.Uint16()
	r.Bytes(32) // random
	o.session, o.suites, o.methods = r.Vector(1), numbers(r.Vector(2)), r.Vector(1)
	if len(r.Rest) > 0 {
		all := r.List(2)
		for len(all.Rest) > 0 {
			typ := all.Uint16()
			o.extensions[typ] = all.Vector(2)
		}
		r.Failed = all.Failed
	}
	if r.Failed {
		return nil, errNotHello
	}
	return o, nil
}

func numbers(b []byte) (all []uint16) {
	for ; len(b) >= 2; b = b[2:] {
		all = append(all, binary.BigEndian.Uint16(b))
	}
	return all
}

// offers13 reports whether the client offers TLS 1.3.
func (o *offer) offers13() bool {
	v := o.extensions[43]
	return len(v) > 0 && slices.Contains(numbers(v[1:]), 0x0304)
}

// suite13 returns TLS_AES_256_GCM_SHA384 if the client offers it, or the first other TLS 1.3 suite.
func (o *offer) suite13() uint16 {
	suite := slices.IndexFunc(o.suites, func(suite uint16) bool { return suite>>8 == 0x13 })
	if suite < 0 || slices.Contains(o.suites, 0x1302) {
		return 0x1302
	}
	return o.suites[suite]
}

// vector returns b after its length in n bytes.
func vector(n int, b ...byte) []byte { return wire.AppendVector(nil, n, b) }

func message(typ byte, body ...byte) []byte { return append([]byte{typ}, vector(3, body...)...) }

func extension(typ uint16, data ...byte) []byte {
	return append([]byte{byte(typ >> 8), byte(typ)}, vector(2, data...)...)
}

func certificateMessage(chain [][]byte) []byte {
	var list []byte
	for _, der := range chain {
		list = append(list, vector(3, der...)...)
	}
	return message(11, vector(3, list...)...)
}

// records returns handshake messages as records.
func records(version uint16, messages ...[]byte) (all []byte) {
	for flight := slices.Concat(messages...); len(flight) > 0; {
		n := min(len(flight), 1<<14)
		all = append(all, 22, byte(version>>8), byte(version))
		all = append(all, vector(2, flight[:n]...)...)
		flight = flight[n:]
	}
	return all
}

func alert(version uint16, code byte) []byte {
	return []byte{21, byte(version >> 8), byte(version), 0, 2, 2, code}
}
