//go:build cgo || ossl_nocgo

package records

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// A recordProgram is a list of operations that make a stream of records, and specifies how its
// victim reads and writes:
//
//	suite role(1) reads(2) arrives(3) writes(2) { operation arguments }
//
// where the second byte holds four fields. Bytes that a program lacks at its end are zeros.
type recordProgram struct {
	suite   int
	victim  tlstest.Role
	reads   []int // sizes of the Reads, in turns
	arrives int   // how many bytes arrive at once, 0 for all
	writes  int   // how much the victim writes first
	code    []byte

	list   []programmed // of the last run
	log    []string     // of the last run
	length int
}

// programmed is a record, or the rest of one.
type programmed struct {
	bytes []byte
	// sealed is the record as it was sealed, or nil if it is not authentic. typ and text are its
	// content.
	sealed []byte
	typ    byte
	text   []byte
	none   bool // not even a content type
}

// intact reports whether the record is as it was sealed, since a second change may undo the first.
func (r *programmed) intact() bool { return r.sealed != nil && bytes.Equal(r.bytes, r.sealed) }

// Operations. Their arguments are bytes, n16 two of them, size two that mean a length.
const (
	opData      = iota // size: application data
	opSeal             // type, n, n bytes
	opPadded           // type, size, padding size
	opKeyUpdate        // request, flags: 1 = the sender's keys stay, 2 = no message
	opInner            // n, n bytes: any inner plaintext
	opZeros            // size: an inner plaintext of zeros
	opOuter            // type, n, n bytes: another type in the header
	opRaw              // type, version16, length16, n, n bytes: a header and the bytes after it
	opGarbage          // n, n bytes
	opMutate           // which, at16, xor
	opCut              // which, n, from: 0 = the end
	opDuplicate        // which
	opSwap             // which, which
	opDrop             // which
	opRepeat           // times: the next operation
	opFragment         // type, size, n, n bytes: in records of size bytes
	opLong             // type, message, length24, n16: a handshake message of zeros, in records of n bytes
	opMissing          // type: sealed and not sent
	operations
)

const (
	maxProgrammed = 128 << 10 // bytes in a stream
	maxOperations = 400
)

var (
	programReads   = [][]int{{1 << 15}, {1, 100, 16384}, {17}, {5000, 1}}
	programArrives = []int{0, 1, 5, 100, 1000, 16384 + 5, 20000, 6}
	programWrites  = []int{0, 1, 3000, 40000}
)

// The suites for RSA certificates come last, and in few programs.
const (
	rsaSuites  = 6
	rareSuites = 251
)

func parseRecordProgram(code []byte) *recordProgram {
	p := new(recordProgram)
	header := make([]byte, 2)
	p.code = code[copy(header, code):]
	p.suite = int(header[0]) % rsaSuites
	if header[0] >= rareSuites {
		p.suite = rsaSuites + int(header[0]-rareSuites)%(len(recordSuites())-rsaSuites)
	}
	p.victim = tlstest.ClientRole
	if header[1]&1 != 0 {
		p.victim = tlstest.ServerRole
	}
	p.reads = programReads[header[1]>>1&3]
	p.arrives = programArrives[header[1]>>3&7]
	p.writes = programWrites[header[1]>>6&3]
	return p
}

func (p *recordProgram) peer() tlstest.Role {
	if p.victim == tlstest.ClientRole {
		return tlstest.ServerRole
	}
	return tlstest.ClientRole
}

func (p *recordProgram) tls13() bool { return recordSuites()[p.suite].version == tls.VersionTLS13 }

// String lists the operations of the last run.
func (p *recordProgram) String() string {
	s := recordSuites()[p.suite]
	return fmt.Sprintf("%s, %s, victim: %s, Reads of %v, arriving by %d, %d written first\n%s", tls.VersionName(s.version),
		tls.CipherSuiteName(s.id), p.victim, p.reads, p.arrives, p.writes, strings.Join(p.log, "\n"))
}

// operands reads a program.
type operands []byte

func (o *operands) byte() byte {
	if len(*o) == 0 {
		return 0
	}
	b := (*o)[0]
	*o = (*o)[1:]
	return b
}

func (o *operands) uint16() int { return int(o.byte())<<8 | int(o.byte()) }

// size reads a length, of a kind of which most are short.
func (o *operands) size() int {
	n := o.uint16()
	if n < longSizes {
		return n % 1024
	}
	return n - longSizes
}

const longSizes = 0xb000

// bytes reads a length and so many bytes.
func (o *operands) bytes() []byte {
	n := int(o.byte())
	b := bytes.Clone((*o)[:min(n, len(*o))])
	*o = (*o)[len(b):]
	return b
}

// run makes the stream with the keys of a hijacked peer.
func (p *recordProgram) run(h *tlstest.Hijacked) [][]byte {
	p.list, p.log, p.length = nil, nil, 0
	code := operands(p.code)
	for i := 0; len(code) > 0 && i < maxOperations; i++ {
		times := 1
		if code[0]%operations == opRepeat {
			code.byte()
			times = int(code.byte())%40 + 1
		}
		start := code
		for ; times > 0 && i < maxOperations; times-- {
			code = start
			p.operation(h, &code)
			i++
		}
	}
	stream := make([][]byte, len(p.list))
	for i, r := range p.list {
		stream[i] = r.bytes
	}
	return stream
}

func (p *recordProgram) note(format string, args ...any) {
	p.log = append(p.log, "\t"+fmt.Sprintf(format, args...))
}

// add appends a record to the stream, as long as it stays within its limit.
func (p *recordProgram) add(r programmed) {
	if p.length += len(r.bytes); p.length <= maxProgrammed {
		p.list = append(p.list, r)
	}
}

// which chooses a record by its number from the end.
func (p *recordProgram) which(b byte) *programmed {
	if len(p.list) == 0 {
		return &programmed{}
	}
	return &p.list[len(p.list)-1-int(b)%len(p.list)]
}

// seal adds a record.
func (p *recordProgram) seal(h *tlstest.Hijacked, typ byte, text []byte) {
	if p.tls13() { // where type 0 is none
		p.inner(h, append(bytes.Clone(text), typ))
		return
	}
	b := h.Seal(typ, text)
	p.add(programmed{bytes: b, sealed: b, typ: typ, text: text})
}

// pattern returns application data that differ by their place in the program.
func (p *recordProgram) pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(len(p.list)*31 + i + i>>8)
	}
	return b
}

// inner adds a record with an inner plaintext; in TLS 1.2, which has none, of application data.
func (p *recordProgram) inner(h *tlstest.Hijacked, inner []byte) {
	if !p.tls13() {
		p.seal(h, tlstest.TypeApplicationData, inner)
		return
	}
	r := programmed{bytes: h.SealInner(inner), none: len(inner) == 0}
	text := bytes.TrimRight(inner, "\x00")
	if len(text) > 0 {
		r.typ, r.text = text[len(text)-1], text[:len(text)-1]
	}
	if len(text) > 0 || r.none {
		r.sealed = r.bytes
	}
	p.add(r)
}

// operation does one operation.
func (p *recordProgram) operation(h *tlstest.Hijacked, code *operands) {
	switch op := code.byte() % operations; op {
	case opMutate, opCut, opDuplicate, opSwap, opDrop:
		p.change(op, code)
	case opFragment, opLong:
		p.message(op, h, code)
	default:
		p.record(op, h, code)
	}
}

// record adds a record, or updates the keys.
func (p *recordProgram) record(op byte, h *tlstest.Hijacked, code *operands) {
	switch op {
	case opData:
		n := code.size()
		p.note("data %d", n)
		p.seal(h, tlstest.TypeApplicationData, p.pattern(n))
	case opSeal:
		typ, text := code.byte(), code.bytes()
		p.note("seal %d %x", typ, text)
		p.seal(h, typ, text)
	case opPadded:
		typ, n, padding := code.byte(), code.size(), code.size()
		p.note("padded %d %d %d", typ, n, padding)
		text := p.pattern(n)
		if !p.tls13() {
			p.seal(h, typ, text)
			break
		}
		p.inner(h, append(append(text, typ), make([]byte, padding)...))
	case opKeyUpdate:
		request, flags := code.byte(), code.byte()
		p.note("key update %d, flags %d", request, flags&3)
		if flags&2 == 0 {
			p.seal(h, tlstest.TypeHandshake, []byte{tlstest.MsgKeyUpdate, 0, 0, 1, request})
		}
		if flags&1 == 0 && p.tls13() {
			h.Rekey()
		}
	case opInner:
		inner := code.bytes()
		p.note("inner %x", inner)
		p.inner(h, inner)
	case opZeros:
		n := code.size()
		p.note("zeros %d", n)
		p.inner(h, make([]byte, n))
	case opOuter:
		typ, text := code.byte(), code.bytes()
		p.note("outer %d %x", typ, text)
		if !p.tls13() {
			p.seal(h, typ, text)
			break
		}
		r := programmed{bytes: h.SealOuter(typ, append(text, tlstest.TypeApplicationData))}
		if typ == tlstest.TypeApplicationData {
			r.sealed, r.typ, r.text = r.bytes, typ, text
		}
		p.add(r)
	case opRaw:
		header := []byte{code.byte(), code.byte(), code.byte(), code.byte(), code.byte()}
		body := code.bytes()
		p.note("raw %x %x", header, body)
		p.add(programmed{bytes: append(header, body...)})
	case opGarbage:
		body := code.bytes()
		p.note("garbage %x", body)
		p.add(programmed{bytes: body})
	case opMissing:
		typ := code.byte()
		p.note("missing %d", typ)
		h.Seal(typ, []byte("missing"))
	}
}

// change changes records that are in the stream.
func (p *recordProgram) change(op byte, code *operands) {
	switch op {
	case opMutate:
		which, at, xor := code.byte(), code.uint16(), code.byte()
		p.note("mutate %d, byte %d, by %#x", which, at, xor)
		if r := p.which(which); len(r.bytes) > 0 && xor != 0 {
			r.bytes = bytes.Clone(r.bytes) // it may be there twice
			r.bytes[at%len(r.bytes)] ^= xor
		}
	case opCut:
		which, n, front := code.byte(), int(code.byte()), code.byte()
		p.note("cut %d, %d bytes, front: %v", which, n, front != 0)
		if r := p.which(which); len(r.bytes) > 0 && n > 0 {
			n = min(n, len(r.bytes))
			if front != 0 {
				r.bytes = r.bytes[n:]
			} else {
				r.bytes = r.bytes[:len(r.bytes)-n]
			}
		}
	case opDuplicate:
		which := code.byte()
		p.note("duplicate %d", which)
		p.add(*p.which(which))
	case opSwap:
		a, b := code.byte(), code.byte()
		p.note("swap %d %d", a, b)
		x, y := p.which(a), p.which(b)
		*x, *y = *y, *x
	case opDrop:
		which := code.byte()
		p.note("drop %d", which)
		*p.which(which) = programmed{}
	}
}

// message adds a message in several records.
func (p *recordProgram) message(op byte, h *tlstest.Hijacked, code *operands) {
	switch op {
	case opFragment:
		typ, size, text := code.byte(), int(code.byte())%64+1, code.bytes()
		p.note("fragment %d %x, by %d", typ, text, size)
		for len(text) > 0 {
			n := min(size, len(text))
			p.seal(h, typ, text[:n])
			text = text[n:]
		}
	case opLong:
		message, n := code.byte(), int(code.byte())%8<<16|code.uint16()
		size := code.uint16()%16384 + 256
		p.note("message %d of %d, by %d", message, n, size)
		text := binary.BigEndian.AppendUint32(nil, uint32(message)<<24|uint32(n))
		text = append(text, make([]byte, min(n, maxProgrammed))...)
		for len(text) > 0 && p.length < maxProgrammed {
			m := min(size, len(text))
			p.seal(h, tlstest.TypeHandshake, text[:m])
			text = text[m:]
		}
	}
}

// strict returns the number of the first record of the stream that has a row in strictHere. It
// assumes that the records before it are good: otherwise no victim reads as far.
func (p *recordProgram) strict() (at int, row *strictness) {
	var message []byte
	for i, r := range p.list {
		switch {
		case len(r.bytes) == 0:
			continue
		case p.tls13() && (r.bytes[0] == tlstest.TypeChangeCipherSpec || r.intact() && r.typ == tlstest.TypeChangeCipherSpec):
			return i, &strictHere.changeCipherSpec // in the clear, or not
		case !r.intact():
			return 0, nil
		case r.none:
			return i, &strictHere.emptyInner
		case !p.tls13() && len(message) > 0 && r.typ != tlstest.TypeHandshake:
			return i, &strictHere.interleaved
		case r.typ != tlstest.TypeHandshake:
			continue
		}
		message = append(message, r.text...)
		for len(message) >= 4 {
			n := 4 + int(message[1])<<16 + int(message[2])<<8 + int(message[3])
			expected := p.tls13() && (message[0] == tlstest.MsgNewSessionTicket || message[0] == tlstest.MsgKeyUpdate) ||
				!p.tls13() && message[0] == tlstest.MsgHelloRequest && n == 4
			if message[0] == tlstest.MsgCertificate && n > 4+1<<16 && n <= 4+1<<18 {
				return i, &strictHere.certificate
			}
			if len(message) < n {
				break
			}
			if !expected {
				return i, &strictHere.message
			}
			if message[0] == tlstest.MsgNewSessionTicket && p.tls13() {
				if row := strictTicket(message[4:n]); row != nil {
					return i, row
				}
			}
			if message[0] == tlstest.MsgKeyUpdate && n == 5 && message[4] > 1 {
				return i, &strictHere.keyUpdateKind
			}
			if message[0] == tlstest.MsgKeyUpdate && n == 5 && message[4] == 1 && len(message) > n {
				return i, &strictHere.behindKeyUpdate
			}
			message = message[n:]
		}
	}
	return 0, nil
}

// strictTicket returns the row for a NewSessionTicket that crypto/tls finds well-formed, or nil.
func strictTicket(body []byte) *strictness {
	rest := operands(body)
	take := func(n int) []byte {
		b := rest[:min(n, len(rest))]
		rest = rest[len(b):]
		return b
	}
	take(8)
	take(int(rest.byte()))
	ticket := rest.uint16()
	if ticket == 0 {
		return &strictHere.emptyTicket
	}
	take(ticket)
	extensions := operands(take(rest.uint16()))
	seen := make(map[int]bool)
	for len(extensions) > 0 {
		kind, n := extensions.uint16(), extensions.uint16()
		if seen[kind] || len(seen) == 64 {
			return &strictHere.ticketExtensions
		}
		seen[kind] = true
		extensions = extensions[min(n, len(extensions)):]
	}
	return nil
}

// plain reports whether libssl refuses nothing that crypto/tls accepts: libssl has other limits on
// warnings and on records without data, and treats some alerts differently.
func (p *recordProgram) plain() bool {
	for _, r := range p.list {
		closing := r.intact() && r.typ == tlstest.TypeAlert && len(r.text) == 2 && r.text[0] == 1 && r.text[1] == 0
		if r.typ == tlstest.TypeAlert && !closing {
			return false
		}
	}
	_, row := p.strict()
	return row == nil
}
