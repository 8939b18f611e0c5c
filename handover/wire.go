package handover

import (
	"bytes"
	"encoding/binary"
)

// The format, of which docs/HANDOVER.md has the description. Numbers are big-endian.
//
// Each side first sends a hello, which never changes: the magic, the role, three zeros, and the lowest
// and the highest version that it speaks. Then both speak the highest version that they have in
// common. All that follows is in messages: a header, and a body.

const (
	lowestVersion  = 1
	highestVersion = 1
)

const (
	magic     = "osslhand"
	helloLen  = 16
	headerLen = 12
)

// A role is a process's part in a hand-over.
type role byte

const (
	oldProcess role = 'S' // it sends
	newProcess role = 'R' // it receives
)

// Kinds of message.
const (
	// From the old process to the new one.
	msgSocket      = 1 // a connection's socket, which the old process still uses
	msgKeep        = 2 // the old process keeps the connection
	msgCertificate = 3 // a certificate in DER, which later states name by its SHA-256
	msgState       = 4 // a connection's state, and the application's data
	msgPlain       = 5 // the application's data of a connection without TLS
	msgListener    = 6 // a listener's socket, and the application's data
	msgDone        = 7 // nothing follows

	// From the new process to the old one.
	msgHave    = 16 // it has the socket
	msgRefused = 17 // it doesn't take it: a byte has the reason
	msgTaken   = 18 // it has the whole connection, or the listener
)

// Reasons of msgRefused.
const (
	refusedFull  = 1 // no descriptor is left
	refusedUnfit = 2 // it isn't a socket of the right kind
	refusedState = 3 // the state can't be read
)

// Flags of a message.
const (
	flagOptional   = 1 // a reader that doesn't know the kind skips the message
	flagDescriptor = 2 // a descriptor comes with the header
)

// Limits, which both sides check.
const (
	maxCore = 4 << 20 // of a state without its certificates
	maxBody = 4 + maxCore + MaxData

	maxOffers = 32 // sockets that the new process has, and whose states it doesn't have
)

// A header is the first part of a message.
type header struct {
	kind, flags byte
	id          uint32 // of the connection or listener that the message is about
	length      uint32 // of the body
}

func (h header) append(b []byte) []byte {
	b = append(b, h.kind, h.flags, 0, 0)
	b = binary.BigEndian.AppendUint32(b, h.id)
	return binary.BigEndian.AppendUint32(b, h.length)
}

// bodies has the shortest and the longest body of each kind, and withSocket the kinds that have a
// descriptor.
var (
	bodies = map[byte][2]uint32{
		msgSocket: {}, msgKeep: {}, msgCertificate: {0, maxCertificate}, msgState: {4, maxBody}, msgPlain: {0, MaxData},
		msgListener: {0, MaxData}, msgDone: {}, msgHave: {}, msgRefused: {1, 1}, msgTaken: {},
	}
	withSocket = map[byte]bool{msgSocket: true, msgListener: true}
)

// isReply reports whether a kind is one that the new process sends.
func isReply(kind byte) bool { return kind >= msgHave && kind <= msgTaken }

// parseHeader parses the header of a message that role from has sent. If skip is set, the kind is
// unknown, and the message is to be skipped.
func parseHeader(b []byte, from role) (h header, skip bool, err error) {
	h = header{kind: b[0], flags: b[1], id: binary.BigEndian.Uint32(b[4:]), length: binary.BigEndian.Uint32(b[8:])}
	length, known := bodies[h.kind]
	known = known && isReply(h.kind) == (from == newProcess)
	switch {
	case b[2] != 0 || b[3] != 0 || h.flags&^(flagOptional|flagDescriptor) != 0:
		return h, false, errorf("%w: a message of kind %d has unknown flags", ErrFormat, h.kind)
	case !known && h.flags&flagOptional != 0 && h.length <= maxBody:
		return h, true, nil
	case !known:
		return h, false, errorf("%w: a message of the unknown kind %d", ErrFormat, h.kind)
	case h.length < length[0] || h.length > length[1]:
		return h, false, errorf("%w: a message of kind %d has %d bytes", ErrFormat, h.kind, h.length)
	case (h.flags&flagDescriptor != 0) != withSocket[h.kind]:
		return h, false, errorf("%w: a message of kind %d with or without a descriptor", ErrFormat, h.kind)
	}
	return h, false, nil
}

// appendHello appends the hello of a process that speaks some versions.
func appendHello(b []byte, r role, lowest, highest uint16) []byte {
	b = append(append(b, magic...), byte(r), 0, 0, 0)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, lowest), highest)
}

// agree returns the version that both processes speak: this one has lowest to highest, and the other,
// which must have role from, has sent hello.
func agree(hello []byte, from role, lowest, highest uint16) (uint16, error) {
	if !bytes.Equal(hello[:len(magic)], []byte(magic)) {
		return 0, errorf("%w: its first bytes are no hello", ErrFormat)
	}
	if got := role(hello[8]); got != from {
		return 0, errorf("%w: its role is %q, not %q", ErrFormat, got, from)
	}
	theirLowest, theirHighest := binary.BigEndian.Uint16(hello[12:]), binary.BigEndian.Uint16(hello[14:])
	version := min(highest, theirHighest)
	if version < lowest || version < theirLowest {
		return 0, errorf("%w: this one has %d to %d, the other %d to %d", ErrVersion, lowest, highest, theirLowest, theirHighest)
	}
	return version, nil
}

// splitState returns the two parts of msgState's body.
func splitState(body []byte) (core, data []byte, err error) {
	n := binary.BigEndian.Uint32(body)
	if n > maxCore || int(n) > len(body)-4 || len(body)-4-int(n) > MaxData {
		return nil, nil, errorf("%w: the parts of a connection don't fit", ErrFormat)
	}
	return body[4 : 4+n : 4+n], body[4+n:], nil
}
