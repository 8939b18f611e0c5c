//go:build cgo || ossl_nocgo

package records

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
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// FuzzRecordPaths gives one stream of records to three victims: crypto/tls, this package on its own
// record path, and on libssl's. The stream is made by a program (see recordProgram), with the keys
// of a hijacked peer, so that it gets beyond the AEAD.
//
// On its own path ossl must do the same as crypto/tls: return the same bytes, fail with an error of
// the same class, send the same records, alerts included, and take or refuse a Write afterwards.
// The cases in which it is stricter on purpose have rows in strictHere, and are checked as exactly.
// On libssl's path only the returned bytes are compared; the differential suite has its alerts.
func FuzzRecordPaths(f *testing.F) {
	for i, seed := range recordSeeds() {
		if testing.Short() && i%4 > 0 {
			continue
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		// Ciphertext is random: a difference once in 2^16 times is not an error.
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

// A strictness is a reason why ossl refuses a record that crypto/tls accepts, or refuses with
// another alert.
type strictness struct {
	alert  uint8
	reason string
}

// strictHere are all of them.
var strictHere = struct {
	changeCipherSpec, emptyInner, interleaved, message, behindKeyUpdate, keyUpdateKind, emptyTicket, ticketExtensions,
	certificate strictness
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
	keyUpdateKind: strictness{47, "A KeyUpdate of an unknown kind gets illegal_parameter, as RFC 8446, section 4.6.3, asks; " +
		"crypto/tls says decode_error."},
	emptyTicket: strictness{50, "A NewSessionTicket holds a ticket (RFC 8446, section 4.6.1); crypto/tls takes one without."},
	ticketExtensions: strictness{47, "No extension comes twice in a NewSessionTicket (RFC 8446, section 4.2), and no more than " +
		"64 come at all; crypto/tls does not look."},
	certificate: strictness{80, "After the handshake a Certificate has the limit of every message, 2^16; in crypto/tls 2^18, " +
		"to be refused once it is whole."},
}

// Two more differences have no row. If the peer closes the transport without close_notify, the
// error is io.ErrUnexpectedEOF, but in crypto/tls io.EOF between two records. And a connection that
// has failed stays failed, while crypto/tls reads on after some errors.

// A recordSuite is a version and cipher suite with its configurations.
type recordSuite struct {
	version, id    uint16
	client, server *tls.Config
}

// recordSuites are the AEAD suites. The suites for RSA certificates, which cost more and seal
// alike, are last.
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
	return map[ossl.RecordPath]string{
		ossl.RecordsAuto: "crypto/tls", ossl.RecordsDirect: "direct", ossl.RecordsLibssl: "libssl",
	}[v.path]
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
	ctx, err := ossl.NewContext(ossltest.WithSessions(config), opts...)
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

// arriving is a transport whose bytes come a few at a time, for as long as that is bearable. It
// records its end.
type arriving struct {
	net.Conn
	most  int // 0 for no limit
	ended bool
	reads int
	// records are the lengths of the remaining records if they arrive one by one, regardless of
	// most; nil if they don't.
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

// heard is the outcome of a stream for a victim.
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

// endedOpen reports whether the victim took everything to the end of the transport, which came
// between two records.
func (h *heard) endedOpen() bool { return h.class == "io.EOF" && h.ended }

var recordHeader = regexp.MustCompile(` header=[0-9a-f]*`)

// runRecords runs a handshake with a victim and gives it the program's stream, up to its record
// number upTo if that is not negative.
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
		// crypto/tls gets them one by one: its Read goes past an ignored alert that follows data, and
		// keeps a handshake message found there until the next record, so its result depends on
		// timing.
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

// walkHeaders describes the headers that a victim reads at most, and returns the lengths of the
// records.
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

// compareRecordPaths runs a program on all victims and reports differences.
func compareRecordPaths(t *testing.T, p *recordProgram) (wrong []string) {
	std := runRecords(t, ossl.RecordsAuto, p, -1)
	own := runRecords(t, ossl.RecordsDirect, p, -1)
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
	// After some faults libssl's path continues, or stops, at another record than crypto/tls. It
	// returns the same bytes.
	n := min(len(std.data), len(libssl.data))
	if !bytes.Equal(std.data[:n], libssl.data[:n]) {
		complain("libssl: other data after %d bytes", n)
	}
	if std.class == "io.EOF" && p.plain() && !ossltest.BreaksAtKeyUpdate() && len(std.data) != len(libssl.data) {
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
		// If crypto/tls accepts everything before that record, ossl must too, and must refuse just
		// this one. (If crypto/tls does not, both stop before it, in the same way.)
		before := runRecords(t, ossl.RecordsAuto, p, at)
		if before.endedOpen() {
			std, class = before, "local error: "+tls.AlertError(row.alert).Error()
			if row == &strictHere.certificate || row == &strictHere.behindKeyUpdate { // with a longer text
				class = "other"
			}
			sent := before.sent[:len(before.sent)-1] // without the data written after the end
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

// oneAnswer replaces consecutive KeyUpdates by a single one, because ours may answer several (RFC
// 8446, section 4.6.3).
func oneAnswer(sent []string) []string {
	const answer = "type 22 1800000100"
	return slices.CompactFunc(slices.Clone(sent), func(a, b string) bool { return a == answer && b == answer })
}
