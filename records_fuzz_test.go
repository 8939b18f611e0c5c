//go:build cgo

package ossl_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// FuzzRecordPaths gives one stream of records to three victims: crypto/tls, this package on its own record path, and on libssl's.
// The stream is made by a program (see recordProgram), with the keys of a hijacked peer, so that it gets beyond the AEAD.
//
// On its own path ossl must do what crypto/tls does: hand out the same bytes, end with an error of the same class, send the
// same records, alerts included, and take or refuse a Write afterwards. Where it is stricter on purpose has a row in strictHere,
// and is checked as exactly. libssl's path is compared for the bytes it hands out; its alerts are the differential suite's.
func FuzzRecordPaths(f *testing.F) {
	for _, seed := range recordSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		// Ciphertext is random: what is wrong once in 2^16 times is not wrong.
		var wrong []string
		p := parseRecordProgram(code)
		for range 4 {
			if wrong = compareRecordPaths(t, p); len(wrong) == 0 {
				return
			}
		}
		t.Errorf("%s\n%s", p, strings.Join(wrong, "\n"))
	})
}

// A strictness is a reason for which ossl refuses a record that crypto/tls takes, or gives another alert for.
type strictness struct {
	alert  uint8
	reason string
}

// strictHere are all of them.
var strictHere = struct {
	changeCipherSpec, emptyInner, interleaved, message, behindKeyUpdate, emptyTicket, ticketExtensions, certificate strictness
}{
	changeCipherSpec: strictness{10, "A ChangeCipherSpec after a TLS 1.3 handshake is refused, as RFC 8446, section 5, asks; " +
		"crypto/tls ignores it, and refuses one that is malformed by decode_error."},
	emptyInner: strictness{10, "A TLS 1.3 record without a content type is refused, as RFC 8446, section 5.4, asks; " +
		"crypto/tls takes one of no bytes at all for empty application data."},
	interleaved: strictness{10, "In TLS 1.2 too nothing comes between the parts of a handshake message; crypto/tls takes " +
		"alerts, and fails at data by an internal error without an alert."},
	message: strictness{10, "A handshake message that has no business after the handshake is unexpected, however it is made; " +
		"crypto/tls parses it first, and says decode_error of some."},
	behindKeyUpdate: strictness{10, "What comes behind a KeyUpdate in its record is refused at once; crypto/tls answers the " +
		"KeyUpdate first, if it asks for that."},
	emptyTicket: strictness{50, "A NewSessionTicket holds a ticket (RFC 8446, section 4.6.1); crypto/tls takes one without."},
	ticketExtensions: strictness{47, "No extension comes twice in a NewSessionTicket (RFC 8446, section 4.2), and no more than " +
		"64 come at all; crypto/tls does not look."},
	certificate: strictness{80, "After the handshake a Certificate has the limit of every message, 2^16; in crypto/tls 2^18, " +
		"to be refused once it is whole."},
}

// Beside these, and without a row: a transport that ends without close_notify is io.ErrUnexpectedEOF, in crypto/tls io.EOF if it
// ends between two records; and a connection that has failed stays failed, where crypto/tls reads on after some errors.

// A recordSuite is a version and cipher suite with its configurations.
type recordSuite struct {
	version, id    uint16
	client, server *tls.Config
}

// recordSuites are the AEAD suites. Those of RSA certificates, which cost more and seal alike, are last.
var recordSuites = sync.OnceValue(func() (list []*recordSuite) {
	for _, s := range []struct {
		version, id uint16
		key         tlstest.KeyKind
	}{
		{tls.VersionTLS13, tls.TLS_AES_128_GCM_SHA256, tlstest.P256},
		{tls.VersionTLS13, tls.TLS_AES_256_GCM_SHA384, tlstest.P256},
		{tls.VersionTLS13, tls.TLS_CHACHA20_POLY1305_SHA256, tlstest.P256},
		{tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tlstest.P256},
		{tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tlstest.P256},
		{tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tlstest.P256},
		{tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tlstest.RSA2048},
		{tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tlstest.RSA2048},
		{tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tlstest.RSA2048},
		{tls.VersionTLS12, tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tlstest.RSA2048},
		{tls.VersionTLS12, tls.TLS_RSA_WITH_AES_256_GCM_SHA384, tlstest.RSA2048},
	} {
		edit := func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = s.version, s.version
			if s.version == tls.VersionTLS12 {
				c.CipherSuites = []uint16{s.id} // in TLS 1.3 crypto/tls chooses
			}
		}
		list = append(list, &recordSuite{
			version: s.version, id: s.id,
			client: tlstest.ClientConfig(edit, func(c *tls.Config) { c.InsecureSkipVerify = true }), // for speed
			server: tlstest.ServerConfig(edit, func(c *tls.Config) {
				c.Certificates = []tls.Certificate{tlstest.ServerCert(s.key)}
			}),
		})
	}
	return list
})

// A recordVictim is crypto/tls, or this package with a record path. It makes one connection.
type recordVictim struct {
	path  ossl.RecordPath // RecordsAuto stands for crypto/tls
	suite *recordSuite
	conn  *arriving
}

func (v *recordVictim) Name() string {
	return map[ossl.RecordPath]string{ossl.RecordsAuto: "crypto/tls", ossl.RecordsOwn: "own", ossl.RecordsLibssl: "libssl"}[v.path]
}

type recordContextKey struct {
	config *tls.Config
	path   ossl.RecordPath
}

var recordContexts sync.Map // of recordContextKey: *ossl.Context

func (v *recordVictim) context(config *tls.Config) *ossl.Context {
	key := recordContextKey{config, v.path}
	if ctx, ok := recordContexts.Load(key); ok {
		return ctx.(*ossl.Context)
	}
	opts := []ossl.Option{ossl.WithRecordPath(v.path)}
	if v.suite.version == tls.VersionTLS13 {
		opts = append(opts, ossl.WithTLS13CipherSuites(v.suite.id))
	}
	ctx, err := ossl.NewContext(config, opts...)
	if err != nil {
		panic(err)
	}
	recordContexts.Store(key, ctx)
	return ctx
}

func (v *recordVictim) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	v.conn = &arriving{Conn: conn}
	if v.path == ossl.RecordsAuto {
		return tlstest.Std.Client(v.conn, config)
	}
	return v.context(config).Client(v.conn, "")
}

func (v *recordVictim) Server(conn net.Conn, config *tls.Config) tlstest.Conn {
	v.conn = &arriving{Conn: conn}
	if v.path == ossl.RecordsAuto {
		return tlstest.Std.Server(v.conn, config)
	}
	return v.context(config).Server(v.conn)
}

// arriving is a transport whose bytes come a few at a time, for as long as that is bearable. It notes its end.
type arriving struct {
	net.Conn
	most  int // 0 for no limit
	ended bool
	reads int
	// records are what is left of the records that come one by one, whatever most says, as lengths; nil if they don't.
	records []int
}

// maxParts is how often a program gets bytes, or its victim reads them, in small parts.
const maxParts = 300

func (a *arriving) Read(p []byte) (int, error) {
	if len(a.records) > 0 {
		n, err := a.Conn.Read(p[:min(len(p), a.records[0])])
		if a.records[0] -= n; a.records[0] == 0 {
			a.records = a.records[1:]
		}
		return n, err
	}
	if a.most > 0 && len(p) > a.most && a.reads < maxParts {
		p = p[:a.most]
		a.reads++
	}
	n, err := a.Conn.Read(p)
	a.ended = a.ended || err == io.EOF
	return n, err
}

// heard is what a victim made of a stream.
type heard struct {
	data  []byte
	err   error
	class string
	again string   // class of another Read's error
	write string   // class of a Write's error afterwards
	sent  []string // records since the handshake
	walk  string   // of walkHeaders
	ended bool     // it has read to the end of the transport
}

// endedOpen reports whether the victim took everything to the end of the transport, which came between two records.
func (h *heard) endedOpen() bool { return h.class == "io.EOF" && h.ended }

var recordHeader = regexp.MustCompile(` header=[0-9a-f]*`)

// runRecords shakes hands with a victim and gives it the program's stream, up to its record number upTo if that is not negative.
func runRecords(t *testing.T, path ossl.RecordPath, p *recordProgram, upTo int) *heard {
	suite := recordSuites()[p.suite]
	v := &recordVictim{path: path, suite: suite}
	h := tlstest.Hijack(t, v, p.peer(), suite.client, suite.server)
	defer h.Victim.Close()
	stream := p.run(h)
	if upTo >= 0 {
		stream = stream[:upTo]
	}
	v.conn.most = p.arrives
	var got heard
	if p.writes > 0 {
		if _, err := h.Victim.Write(make([]byte, p.writes)); err != nil {
			t.Fatalf("%s: the first Write: %v", v.Name(), err)
		}
	}
	all := bytes.Join(stream, nil)
	got.walk, v.conn.records = walkHeaders(all, p.tls13())
	if path != ossl.RecordsAuto {
		// To crypto/tls they come one by one. A Read of it that has found an ignored alert behind its data reads on, and leaves a
		// handshake message that it finds there until after the next record: what it makes of that depends on what has arrived.
		v.conn.records = nil
	}
	h.SendRaw(all)
	h.End()
	buf := make([]byte, 1<<15)
	for i := 0; ; i++ {
		size := p.reads[i%len(p.reads)]
		if i >= maxParts {
			size = len(buf)
		}
		n, err := h.Victim.Read(buf[:size])
		got.data = append(got.data, buf[:n]...)
		if err != nil {
			got.err = err
			break
		}
		if n == 0 {
			t.Fatalf("%s: a Read of nothing, without an error", v.Name())
		}
	}
	got.class = recordHeader.ReplaceAllString(tlstest.Class(got.err), "")
	var header tls.RecordHeaderError
	if errors.As(got.err, &header) && !bytes.Contains(all, header.RecordHeader[:]) {
		t.Errorf("%s: a header that was never sent: %x", v.Name(), header.RecordHeader)
	}
	got.ended = v.conn.ended
	_, werr := h.Victim.Write([]byte("afterwards"))
	got.write = recordHeader.ReplaceAllString(tlstest.Class(werr), "")
	got.sent = oneAnswer(describeSent(h.Received()))
	n, again := h.Victim.Read(buf) // crypto/tls may send another alert now
	got.again = fmt.Sprint(n, recordHeader.ReplaceAllString(tlstest.Class(again), ""))
	return &got
}

// walkHeaders describes the headers that a victim comes by at most, and returns the lengths of the records.
func walkHeaders(stream []byte, tls13 bool) (string, []int) {
	var walk []string
	var lengths []int
	limit := 16384 + 2048
	if tls13 {
		limit = 16384 + 256
	}
	for len(stream) >= 5 {
		length := int(binary.BigEndian.Uint16(stream[3:]))
		if stream[1] != 3 || stream[2] != 3 {
			walk = append(walk, "other version")
			break
		}
		if length > limit {
			walk = append(walk, "too long")
			break
		}
		walk = append(walk, fmt.Sprintf("%d: %d", stream[0], length))
		lengths = append(lengths, min(5+length, len(stream)))
		stream = stream[min(5+length, len(stream)):]
	}
	return strings.Join(walk, ", "), lengths
}

// describeSent lists records, application data by its amount only.
func describeSent(records []tlstest.Record) (list []string) {
	for _, r := range records {
		switch {
		case r.Opaque:
			list = append(list, "sealed")
		case r.Type == tlstest.TypeApplicationData:
			list = append(list, fmt.Sprintf("data %d", len(r.Payload)))
		default:
			list = append(list, fmt.Sprintf("type %d %x", r.Type, r.Payload))
		}
	}
	return list
}

// compareRecordPaths runs a program on all victims and says what is wrong.
func compareRecordPaths(t *testing.T, p *recordProgram) (wrong []string) {
	std := runRecords(t, ossl.RecordsAuto, p, -1)
	own := runRecords(t, ossl.RecordsOwn, p, -1)
	libssl := runRecords(t, ossl.RecordsLibssl, p, -1)
	if std.walk != own.walk || std.walk != libssl.walk {
		return nil // the program has made a header of ciphertext, which is another one each time
	}
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }

	if own.again != "0"+own.class {
		complain("own: the second error is %s, the first was %s", own.again, own.class)
	}
	if differences := p.compare(t, std, own); len(differences) > 0 {
		wrong = append(wrong, differences...)
	}
	// libssl's path goes on, or stops, elsewhere than crypto/tls at some of what is wrong. What it hands out is the same.
	n := min(len(std.data), len(libssl.data))
	if !bytes.Equal(std.data[:n], libssl.data[:n]) {
		complain("libssl: other data after %d bytes", n)
	}
	if std.class == "io.EOF" && p.plain() && len(std.data) != len(libssl.data) {
		complain("libssl: %d bytes of data, crypto/tls %d; errors: %v, crypto/tls's: %v", len(libssl.data), len(std.data), libssl.err,
			std.err)
	}
	return wrong
}

// compare compares ossl's own path with crypto/tls.
func (p *recordProgram) compare(t *testing.T, std, own *heard) (wrong []string) {
	complain := func(what string, got, want any, row *strictness) {
		text := fmt.Sprintf("own: %s is %v, crypto/tls's is %v\nerrors: %v, crypto/tls's: %v", what, got, want, own.err, std.err)
		if row != nil {
			text += "\nrow: " + row.reason
		}
		wrong = append(wrong, text)
	}
	class := std.class
	if std.endedOpen() {
		class = "io.ErrUnexpectedEOF"
	}
	alike := bytes.Equal(std.data, own.data) && class == own.class && fmt.Sprint(std.sent) == fmt.Sprint(own.sent) &&
		std.write == own.write
	if alike {
		return nil
	}
	at, row := p.strict()
	if row != nil {
		// crypto/tls takes all that comes before that record: then ossl has to, and must refuse just this one. (If it does not,
		// both end before it, and alike.)
		before := runRecords(t, ossl.RecordsAuto, p, at)
		if before.endedOpen() {
			std, class = before, "local error: "+tls.AlertError(row.alert).Error()
			if row == &strictHere.certificate || row == &strictHere.behindKeyUpdate { // with a text that says more
				class = "other"
			}
			sent := before.sent[:len(before.sent)-1] // without what was written after the end
			std.sent = append(sent, fmt.Sprintf("type 21 02%02x", row.alert))
			std.write = "local error: " + tls.AlertError(row.alert).Error()
		} else {
			row = nil
		}
	}
	if !bytes.Equal(std.data, own.data) {
		complain("data", shorten(own.data), shorten(std.data), row)
	}
	if class != own.class {
		complain("error", own.class, class, row)
	}
	if fmt.Sprint(std.sent) != fmt.Sprint(own.sent) {
		complain("what was sent", own.sent, std.sent, row)
	}
	if std.write != own.write {
		complain("Write's error", own.write, std.write, row)
	}
	return wrong
}

func shorten(b []byte) string {
	if len(b) <= 24 {
		return fmt.Sprintf("%x", b)
	}
	return fmt.Sprintf("%d bytes, %x…%x", len(b), b[:8], b[len(b)-8:])
}

// A recordProgram is a list of operations that make a stream of records, and how its victim lives through it:
//
//	suite role(1) reads(2) arrives(3) writes(2) { operation arguments }
//
// where the second byte holds four fields. What is missing at the end of a program is zeros.
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

// programmed is a record, or what is left of one.
type programmed struct {
	bytes []byte
	// sealed is the record as it was sealed, nil if it is not authentic. Then what was in it follows.
	sealed []byte
	typ    byte
	text   []byte
	none   bool // not even a content type
}

// intact reports whether the record is as it was sealed: what changes it may change it back.
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
	opRaw              // type, version16, length16, n, n bytes: a header and what follows it
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

// The suites of RSA certificates come last, and in few programs.
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

// pattern is application data that tells where it is from.
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
	case opMissing:
		typ := code.byte()
		p.note("missing %d", typ)
		h.Seal(typ, []byte("missing"))
	}
}

// strict returns the number of the first record of the stream that a row of strictHere is about. What comes before it is taken to
// be in order: if it is not, nobody comes so far.
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
			if message[0] == tlstest.MsgKeyUpdate && n == 5 && message[4] == 1 && len(message) > n {
				return i, &strictHere.behindKeyUpdate
			}
			message = message[n:]
		}
	}
	return 0, nil
}

// strictTicket returns the row that a NewSessionTicket falls under that is well-formed to crypto/tls, or nil.
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

// plain reports whether libssl has nothing to object to that crypto/tls does not mind: it has other limits to warnings and to
// records without data, and its own opinion of some alerts.
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

// oneAnswer makes KeyUpdates in a row one: one of ours may answer several (RFC 8446, section 4.6.3).
func oneAnswer(sent []string) []string {
	const answer = "type 22 1800000100"
	return slices.CompactFunc(slices.Clone(sent), func(a, b string) bool { return a == answer && b == answer })
}
