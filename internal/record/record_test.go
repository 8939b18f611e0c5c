package record

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
)

// Packages internal/tests/differential and internal/tests/records compare whole connections with
// crypto/tls for the same records: TestDifferentialAfterHandshake, TestDifferentialSealedAlerts and
// FuzzRecordPaths.

// Kinds of an Outcome's error, as programs can distinguish them.
const (
	none     = ""
	local    = "local"  // *net.OpError "local error" with the alert that is sent
	remote   = "remote" // *net.OpError "remote error" with the peer's alert
	eof      = "EOF"
	textOnly = "text"
)

// errorKind describes an error, and the alert in it.
func errorKind(err error) (kind string, alert int) {
	var op *net.OpError
	var a tls.AlertError
	switch {
	case err == nil:
		return none, NoAlert
	case err == io.EOF:
		return eof, NoAlert
	case !errors.As(err, &op) || !errors.As(err, &a):
		return textOnly, NoAlert
	case op.Op == "local error":
		return local, int(a)
	}
	return remote, int(a)
}

// message is a handshake message.
func message(typ byte, body ...byte) []byte {
	return append([]byte{typ, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

var (
	update     = message(keyUpdate, 0)
	request    = message(keyUpdate, 1)
	ticketBody = []byte{0, 0, 0x1c, 0x20, 1, 2, 3, 4, 1, 7, 0, 5, 'h', 'e', 'l', 'l', 'o', 0, 8, 0, 42, 0, 4, 0, 0, 4, 0}
	ticket     = message(newSessionTicket, ticketBody...)
)

// A row is one record and its expected Outcome.
type row struct {
	name string
	typ  uint8
	text []byte

	err   string // of errorKind
	alert int
	// remoteAlert is the alert in a remote error.
	remoteAlert             int
	updateRead, updateWrite bool
}

func refused(name string, typ uint8, text []byte, alert int) row {
	return row{name: name, typ: typ, text: text, err: local, alert: alert}
}

// broken is a handshake record that gets unexpected_message with a more specific error.
func broken(name string, text []byte) row {
	return row{name: name, typ: Handshake, text: text, err: textOnly, alert: AlertUnexpectedMessage}
}

func fine(name string, typ uint8, text []byte) row {
	return row{name: name, typ: typ, text: text, alert: NoAlert}
}

func said(name string, text []byte, alert int) row {
	return row{name: name, typ: Alert, text: text, err: remote, remoteAlert: alert, alert: NoAlert}
}

// always are the records that mean the same in both versions and on both sides.
var always = []row{
	{name: "close_notify", typ: Alert, text: []byte{1, 0}, err: eof, alert: NoAlert},
	{name: "fatal close_notify", typ: Alert, text: []byte{2, 0}, err: eof, alert: NoAlert},
	{name: "close_notify of level 0", typ: Alert, text: []byte{0, 0}, err: eof, alert: NoAlert},
	said("fatal alert", []byte{2, 40}, 40),
	said("fatal unknown alert", []byte{2, 200}, 200),
	refused("empty alert", Alert, nil, AlertUnexpectedMessage),
	refused("short alert", Alert, []byte{2}, AlertUnexpectedMessage),
	refused("long alert", Alert, []byte{2, 40, 0}, AlertUnexpectedMessage),
	refused("two alerts", Alert, []byte{1, 90, 2, 40}, AlertUnexpectedMessage),
	refused("ChangeCipherSpec", ChangeCipherSpec, []byte{1}, AlertUnexpectedMessage),
	fine("empty data", ApplicationData, nil),
	refused("empty handshake record", Handshake, nil, AlertUnexpectedMessage),
	refused("type 0", 0, []byte("x"), AlertUnexpectedMessage),
	refused("type 0 without text", 0, nil, AlertUnexpectedMessage),
	refused("type 24", 24, []byte("x"), AlertUnexpectedMessage),
	refused("type 255", 255, []byte("x"), AlertUnexpectedMessage),
	refused("ClientHello", Handshake, message(1, 0), AlertUnexpectedMessage),
	refused("ServerHello", Handshake, message(2, 0), AlertUnexpectedMessage),
	refused("Certificate", Handshake, message(11, 0), AlertUnexpectedMessage),
	refused("CertificateRequest", Handshake, message(13, 0, 0, 0), AlertUnexpectedMessage),
	refused("Finished", Handshake, message(20, make([]byte, 32)...), AlertUnexpectedMessage),
	refused("unknown message", Handshake, message(99), AlertUnexpectedMessage),
	{name: "message of 2^16+1", typ: Handshake, text: []byte{4, 1, 0, 1}, err: textOnly, alert: AlertInternalError},
	{name: "message of 2^24-1", typ: Handshake, text: []byte{99, 0xff, 0xff, 0xff}, err: textOnly, alert: AlertInternalError},
	fine("message of 2^16 begun", Handshake, []byte{4, 1, 0, 0}),
	fine("header begun", Handshake, []byte{4, 0xff, 0xff}),
}

var only12 = []row{
	refused("long ChangeCipherSpec", ChangeCipherSpec, []byte{1, 1}, AlertDecodeError),
	refused("empty ChangeCipherSpec", ChangeCipherSpec, nil, AlertDecodeError),
	refused("ChangeCipherSpec of 2", ChangeCipherSpec, []byte{2}, AlertDecodeError),
	fine("warning", Alert, []byte{1, 90}),
	fine("warning no_renegotiation", Alert, []byte{1, 100}),
	fine("warning handshake_failure", Alert, []byte{1, 40}),
	refused("alert of level 0", Alert, []byte{0, 40}, AlertUnexpectedMessage),
	refused("alert of level 3", Alert, []byte{3, 40}, AlertUnexpectedMessage),
	said("fatal user_canceled", []byte{2, 90}, 90),
	refused("HelloRequest", Handshake, message(helloRequest), AlertNoRenegotiation),
	refused("HelloRequest with a body", Handshake, message(helloRequest, 0), AlertUnexpectedMessage),
	refused("NewSessionTicket", Handshake, ticket, AlertUnexpectedMessage),
	refused("KeyUpdate", Handshake, update, AlertUnexpectedMessage),
}

var only13 = []row{
	refused("long ChangeCipherSpec", ChangeCipherSpec, []byte{1, 1}, AlertUnexpectedMessage),
	fine("user_canceled", Alert, []byte{1, 90}),
	fine("fatal user_canceled", Alert, []byte{2, 90}),
	said("a warning is none", []byte{1, 40}, 40),
	said("no_renegotiation", []byte{1, 100}, 100),
	said("alert of level 0", []byte{0, 40}, 40),
	said("alert of level 3", []byte{3, 40}, 40),
	refused("HelloRequest", Handshake, message(helloRequest), AlertUnexpectedMessage),
	{name: "KeyUpdate", typ: Handshake, text: update, alert: NoAlert, updateRead: true},
	{name: "KeyUpdate requested", typ: Handshake, text: request, alert: NoAlert, updateRead: true, updateWrite: true},
	refused("KeyUpdate of 2", Handshake, message(keyUpdate, 2), AlertIllegalParameter),
	refused("KeyUpdate of 255", Handshake, message(keyUpdate, 255), AlertIllegalParameter),
	refused("empty KeyUpdate", Handshake, message(keyUpdate), AlertDecodeError),
	refused("long KeyUpdate", Handshake, message(keyUpdate, 0, 0), AlertDecodeError),
	broken("KeyUpdate with a message behind it", join(update, update)),
	broken("KeyUpdate with a byte behind it", join(update, []byte{4})),
	refused("KeyUpdate of 2 with a message behind it", Handshake, join(message(keyUpdate, 2), update), AlertIllegalParameter),
}

// tickets are accepted only by a client; a server refuses them, malformed ones for being malformed.
var tickets = []row{
	fine("NewSessionTicket", Handshake, ticket),
	fine("two NewSessionTickets", Handshake, join(ticket, ticket)),
	fine("NewSessionTicket, and a part of another message", Handshake, join(ticket, ticket[:5])),
	{name: "NewSessionTicket and KeyUpdate", typ: Handshake, text: join(ticket, update), alert: NoAlert, updateRead: true},
	{name: "NewSessionTicket and KeyUpdate requested", typ: Handshake, text: join(ticket, request), alert: NoAlert,
		updateRead: true, updateWrite: true},
	refused("NewSessionTicket and an unknown message", Handshake, join(ticket, message(99)), AlertUnexpectedMessage),
	fine("without extensions", Handshake, message(newSessionTicket, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0, 0)),
	fine("with an unknown extension", Handshake,
		message(newSessionTicket, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0, 6, 0xfa, 0xfa, 0, 2, 1, 2)),
}

func check(t *testing.T, r *Reader, row row) {
	t.Helper()
	text := bytes.Clone(row.text)
	o := r.Record(row.typ, text)
	if !bytes.Equal(text, row.text) {
		t.Errorf("%s: the text was changed", row.name)
	}
	kind, alert := errorKind(o.Err)
	if kind != row.err || o.Alert != row.alert || o.UpdateRead != row.updateRead || o.UpdateWrite != row.updateWrite {
		t.Errorf("%s: %+v (%v), want %+v", row.name, o, o.Err, row)
	}
	switch {
	case kind == local && alert != row.alert:
		t.Errorf("%s: the error says alert %d, and %d is sent", row.name, alert, row.alert)
	case kind == remote && alert != row.remoteAlert:
		t.Errorf("%s: the error says alert %d, the peer said %d", row.name, alert, row.remoteAlert)
	}
}

func eachReader(t *testing.T, test func(t *testing.T, newReader func() *Reader)) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, isClient := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/client=%v", tls.VersionName(version), isClient), func(t *testing.T) {
				test(t, func() *Reader { return &Reader{Version: version, IsClient: isClient} })
			})
		}
	}
}

func TestRecord(t *testing.T) {
	eachReader(t, func(t *testing.T, newReader func() *Reader) {
		rows := append(always[:len(always):len(always)], only12...)
		if newReader().Version == tls.VersionTLS13 {
			rows = append(always[:len(always):len(always)], only13...)
			if newReader().IsClient {
				rows = append(rows, tickets...)
			} else {
				rows = append(rows,
					broken("NewSessionTicket", ticket),
					refused("malformed NewSessionTicket", Handshake, message(newSessionTicket, 0), AlertDecodeError))
			}
		}
		for _, row := range rows {
			check(t, newReader(), row)
		}
	})
}

// TestMalformedTickets truncates a NewSessionTicket everywhere, and increases each of its lengths.
func TestMalformedTickets(t *testing.T) {
	newReader := func() *Reader { return &Reader{Version: tls.VersionTLS13, IsClient: true} }
	bad := func(name string, body []byte) {
		t.Helper()
		check(t, newReader(), refused(name, Handshake, message(newSessionTicket, body...), AlertDecodeError))
	}
	for n := range ticketBody {
		bad(fmt.Sprintf("%d of %d bytes", n, len(ticketBody)), ticketBody[:n])
	}
	bad("a byte too long", join(ticketBody, []byte{0}))
	for _, at := range []int{8, 10, 11, 17, 18, 21, 22} { // the bytes of lengths
		for _, by := range []byte{1, 0xff} {
			body := bytes.Clone(ticketBody)
			body[at] += by
			bad(fmt.Sprintf("length at %d changed by %d", at, int8(by)), body)
		}
	}
	bad("early data of 3 bytes", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0, 7, 0, 42, 0, 3, 0, 0, 0})
	bad("early data of 5 bytes", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0, 9, 0, 42, 0, 5, 0, 0, 0, 0, 0})
	bad("an empty ticket", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	check(t, newReader(), refused("an extension twice", Handshake,
		message(newSessionTicket, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0, 8, 0, 99, 0, 0, 0, 99, 0, 0), AlertIllegalParameter))
	bad("an extension of one byte", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0, 1, 0})
	bad("an extension without its length", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0, 3, 0, 1, 0})
}

// TestFragments splits messages into two records, everywhere, and into records of every size.
func TestFragments(t *testing.T) {
	for _, test := range []struct {
		name string
		text []byte
		want row
	}{
		{"KeyUpdate", update, row{alert: NoAlert, updateRead: true}},
		{"KeyUpdate requested", request, row{alert: NoAlert, updateRead: true, updateWrite: true}},
		{"KeyUpdate of 2", message(keyUpdate, 2), row{err: local, alert: AlertIllegalParameter}},
		{"NewSessionTicket", ticket, row{alert: NoAlert}},
		{"NewSessionTicket and KeyUpdate requested", join(ticket, request), row{alert: NoAlert, updateRead: true, updateWrite: true}},
		{"truncated NewSessionTicket", message(newSessionTicket, ticketBody[:20]...), row{err: local, alert: AlertDecodeError}},
		{"unknown message", message(99, make([]byte, 30)...), row{err: local, alert: AlertUnexpectedMessage}},
	} {
		t.Run(test.name, func(t *testing.T) {
			feed := func(size ...int) (got row) {
				r := &Reader{Version: tls.VersionTLS13, IsClient: true}
				text := test.text
				for i := 0; len(text) > 0; i++ {
					if i > 0 && !r.Partial() && len(test.text) != len(text)+len(ticket) { // except between two messages
						t.Fatalf("cut into %v: nothing is kept before piece %d", size, i)
					}
					n := min(size[min(i, len(size)-1)], len(text))
					piece := bytes.Clone(text[:n])
					o := r.Record(Handshake, piece)
					clear(piece) // the Reader must have its own copy
					text = text[n:]
					got.alert = o.Alert
					got.err, _ = errorKind(o.Err)
					got.updateRead = got.updateRead || o.UpdateRead
					got.updateWrite = got.updateWrite || o.UpdateWrite
					if o.Err != nil {
						if len(text) > 0 {
							t.Fatalf("cut into %v: refused with %d bytes to come", size, len(text))
						}
						return got
					}
				}
				if r.Partial() || len(r.message) > 0 {
					t.Fatalf("cut into %v: %d bytes are left", size, len(r.message))
				}
				return got
			}
			for n := 1; n < len(test.text); n++ {
				for _, size := range [][]int{{n, len(test.text)}, {n}, {n, 1}} {
					if got := feed(size...); fmt.Sprint(got) != fmt.Sprint(test.want) {
						t.Fatalf("cut into %v: %+v, want %+v", size, got, test.want)
					}
				}
			}
		})
	}
}

// TestInterleaved: no record is allowed between the parts of a handshake message. RFC 8446, section
// 5.1, forbids it; in TLS 1.2, where every handshake message is fatal to the connection, this
// changes only the alert.
func TestInterleaved(t *testing.T) {
	eachReader(t, func(t *testing.T, newReader func() *Reader) {
		for n := 1; n < len(ticket); n++ {
			for _, row := range []row{
				refused("data", ApplicationData, []byte("x"), AlertUnexpectedMessage),
				refused("empty data", ApplicationData, nil, AlertUnexpectedMessage),
				refused("alert", Alert, []byte{2, 40}, AlertUnexpectedMessage),
				refused("close_notify", Alert, []byte{1, 0}, AlertUnexpectedMessage),
				refused("user_canceled", Alert, []byte{1, 90}, AlertUnexpectedMessage),
				refused("ChangeCipherSpec", ChangeCipherSpec, []byte{1}, AlertUnexpectedMessage),
				refused("unknown type", 99, []byte("x"), AlertUnexpectedMessage),
				refused("empty handshake record", Handshake, nil, AlertUnexpectedMessage),
			} {
				r := newReader()
				check(t, r, fine("a part", Handshake, ticket[:n]))
				check(t, r, row)
			}
		}
	})
}

// TestIgnored counts ignored records: exactly 16 in a row are allowed.
func TestIgnored(t *testing.T) {
	eachReader(t, func(t *testing.T, newReader func() *Reader) {
		warning := fine("warning", Alert, []byte{1, 90}) // user_canceled in TLS 1.3
		rows := []row{fine("empty data", ApplicationData, nil), warning}
		if newReader().Version == tls.VersionTLS13 {
			rows = append(rows, row{name: "KeyUpdate", typ: Handshake, text: update, alert: NoAlert, updateRead: true})
			if newReader().IsClient {
				rows = append(rows, fine("NewSessionTicket", Handshake, ticket))
			}
		}
		for _, first := range rows {
			for _, last := range rows {
				r := newReader()
				for range 3 { // data resets the count
					for i := range 16 {
						if i%2 == 0 {
							check(t, r, first)
						} else {
							check(t, r, last)
						}
					}
					r.Data()
				}
				for range 16 {
					check(t, r, first)
				}
				check(t, r, row{name: "the 17th, " + last.name, typ: last.typ, text: last.text, err: textOnly, alert: AlertUnexpectedMessage})
			}
		}
	})
	// A malformed message is refused as malformed before it is counted.
	malformed := &Reader{Version: tls.VersionTLS13, IsClient: true}
	check(t, malformed, fine("16 tickets in a record", Handshake, bytes.Repeat(ticket, 16)))
	check(t, malformed, refused("the 17th, a KeyUpdate of 2", Handshake, message(keyUpdate, 2), AlertIllegalParameter))

	// Messages count, not records.
	r := &Reader{Version: tls.VersionTLS13, IsClient: true}
	check(t, r, fine("16 tickets in a record", Handshake, bytes.Repeat(ticket, 16)))
	check(t, r, broken("the 17th", ticket))
	r = &Reader{Version: tls.VersionTLS13, IsClient: true}
	check(t, r, broken("17 tickets in a record", bytes.Repeat(ticket, 17)))
}

// TestLargestMessage sends a message of the largest size, in records of the largest size: it is
// accepted, and the kept part is bounded.
func TestLargestMessage(t *testing.T) {
	body := make([]byte, maxMessage)
	copy(body[8:], []byte{0, 0xff, 0xf0}) // nonce; a ticket of 65520; then extensions of 4 bytes: one, empty
	const ticketLen = maxMessage - 8 - 1 - 2 - 2 - 4
	body[9], body[10] = ticketLen>>8, ticketLen&0xff
	copy(body[11+ticketLen:], []byte{0, 4, 0xfa, 0xfa, 0, 0})
	text := message(newSessionTicket, body...)
	r := &Reader{Version: tls.VersionTLS13, IsClient: true}
	for len(text) > 0 {
		n := min(len(text), 1<<14)
		check(t, r, fine("a part", Handshake, text[:n]))
		if len(r.message) > maxKept {
			t.Fatalf("%d bytes are kept", len(r.message))
		}
		text = text[n:]
	}
	if r.Partial() {
		t.Errorf("%d bytes are left", len(r.message))
	}
}

// maxKept is the largest kept part of a message: all but its last byte.
const maxKept = messageHeader + maxMessage - 1

// FuzzRecords reads arbitrary records. Nothing panics, the kept part is bounded and a copy, and no
// Outcome is inconsistent.
func FuzzRecords(f *testing.F) {
	record := func(typ byte, text []byte) []byte {
		return join([]byte{typ, byte(len(text) >> 8), byte(len(text))}, text)
	}
	for _, list := range [][]row{always, only12, only13, tickets} {
		for _, row := range list {
			f.Add(byte(3), record(row.typ, row.text))
			f.Add(byte(0), join(record(row.typ, row.text), record(ApplicationData, []byte("x"))))
		}
	}
	for n := 1; n < len(ticket); n += 3 {
		f.Add(byte(3), join(record(Handshake, ticket[:n]), record(Handshake, ticket[n:])))
	}
	f.Add(byte(3), bytes.Repeat(record(ApplicationData, nil), 17))
	f.Add(byte(1), bytes.Repeat(record(Handshake, request), 17))
	f.Add(byte(3), join(record(Handshake, []byte{4, 1, 0, 0}), bytes.Repeat(record(Handshake, make([]byte, 1<<14)), 4)))
	f.Fuzz(func(t *testing.T, kind byte, stream []byte) {
		r := &Reader{Version: tls.VersionTLS12, IsClient: kind&2 != 0}
		if kind&1 != 0 {
			r.Version = tls.VersionTLS13
		}
		ignored := 0
		for len(stream) >= 3 {
			typ, n := stream[0], int(stream[1])<<8|int(stream[2])
			// A length beyond the input stands for zeros: messages of 64 KB in an input of some
			// bytes.
			text := make([]byte, min(n, 1<<14))
			stream = stream[3+copy(text, stream[3:]):]
			if typ == ApplicationData && len(text) > 0 && !r.Partial() { // it does not get here
				r.Data()
				ignored = 0
				continue
			}
			kept := bytes.Clone(r.message)
			o := r.Record(typ, text)
			clear(text)
			if len(r.message) > maxKept && o.Err == nil || cap(r.message) > 2*(maxKept+1<<14) {
				t.Fatalf("%d bytes kept in %d", len(r.message), cap(r.message))
			}
			errKind, alert := errorKind(o.Err)
			switch {
			case errKind == local && alert != o.Alert, (errKind == remote || errKind == eof) && o.Alert != NoAlert,
				errKind == textOnly && o.Alert == NoAlert, errKind == none && o.Alert != NoAlert:
				t.Fatalf("alert %d and error %v", o.Alert, o.Err)
			case (o.UpdateRead || o.UpdateWrite) && (r.Version != tls.VersionTLS13 || typ != Handshake || r.Partial() || o.Err != nil),
				o.UpdateWrite && !o.UpdateRead:
				t.Fatalf("an update without a KeyUpdate: %+v", o)
			case len(kept) > 0 && typ != Handshake && o.Err == nil:
				t.Fatalf("type %d inside of a message", typ)
			case typ != Alert && typ != ApplicationData && typ != Handshake && o.Err == nil:
				t.Fatalf("type %d is taken", typ)
			}
			if o.Err != nil {
				return
			}
			if typ != Handshake {
				if ignored++; ignored > maxIgnored {
					t.Fatalf("%d records without data", ignored)
				}
			}
		}
	})
}
