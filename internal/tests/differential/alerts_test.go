//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// alerts are all alerts that any TLS version defines, and some that none defines.
var alerts = []byte{0, 1, 10, 20, 21, 22, 30, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 60, 70, 71, 80, 86, 90, 100, 109,
	110, 111, 112, 113, 114, 115, 116, 120, 121, 200, 255}

// TestDifferentialPlainAlerts answers a client's ClientHello, and greets a server, with every alert
// of every level.
func TestDifferentialPlainAlerts(t *testing.T) {
	defer checkStale(t)
	for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
		for _, version := range tlstest.Versions {
			for _, level := range []byte{0, 1, 2, 3} {
				for _, a := range alerts {
					if (level == 0 || level == 3) && a != 0 && a != 40 && a != 90 && a != 200 {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/level %d/%d", role, tlstest.VersionName(version), level, a), func(t *testing.T) {
						script(t, role, opts(tlstest.Only(version)), [][]byte{record(21, string([]byte{level, a}))}, true)
					})
				}
			}
		}
	}
}

// TestAlertError tests a promise of package ossl beyond crypto/tls: a peer's alert is a
// tls.AlertError that errors.As finds.
func TestAlertError(t *testing.T) {
	for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
		for _, a := range []byte{10, 40, 42, 80, 120} {
			t.Run(fmt.Sprintf("%s/%d", role, a), func(t *testing.T) {
				config, what := tlstest.ServerConfig(), [][]byte{clientHello(t)}
				if role == tlstest.ClientRole {
					config, what = tlstest.ClientConfig(), nil
				}
				s := tlstest.Script(ossltest.UnderTest, role, config, append(what, record(21, string([]byte{2, a}))), true)
				var alert tls.AlertError
				var op *net.OpError
				if !errors.As(s.Err, &alert) || alert != tls.AlertError(a) {
					t.Errorf("no tls.AlertError %d in %v", a, s.Err)
				}
				if !errors.As(s.Err, &op) || op.Op != "remote error" {
					t.Errorf("no net.OpError of a remote error: %#v", s.Err)
				}
			})
		}
	}
}

// clientHello returns crypto/tls's TLS 1.2 ClientHello.
func clientHello(t *testing.T) []byte {
	t.Helper()
	o := tlstest.Run(pairings()[0], tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS12))})
	records, _ := tlstest.SplitRecords(o.Recording.Bytes(tlstest.ClientRole))
	return tlstest.MakeRecord(records[0].Type, records[0].Version, records[0].Payload)
}

// An after is something that happens to a connection after its handshake, done by a peer that can
// seal any record.
type after struct {
	name string
	do   func(*tlstest.Hijacked)
}

// hijacked compares a victim of a hijacked peer: the data it reads until its first error, that
// error, the same error again, the result of a Write then, and the alerts it sends.
func hijacked(t *testing.T, version uint16, victim tlstest.Role, do func(*tlstest.Hijacked)) {
	t.Helper()
	peer := tlstest.ServerRole
	if victim == tlstest.ServerRole {
		peer = tlstest.ClientRole
	}
	run := func(impl tlstest.Impl) (fields map[string]string, err error) {
		fields = make(map[string]string)
		h := tlstest.Hijack(t, impl, peer, tlstest.ClientConfig(tlstest.Only(version)), tlstest.ServerConfig(tlstest.Only(version)))
		do(h)
		h.End()
		var data []byte
		buf := make([]byte, 1<<15)
		for {
			var n int
			n, err = h.Victim.Read(buf)
			data = append(data, buf[:n]...)
			if err != nil {
				break
			}
		}
		fields["Heard"] = fmt.Sprintf("%d bytes %.40q", len(data), data)
		fields["Talk"] = tlstest.Class(err)
		_, again := h.Victim.Read(buf)
		fields["Again"] = tlstest.Class(again)
		_, werr := h.Victim.Write([]byte("x"))
		fields["Write"] = tlstest.Class(werr)
		var sent []string
		for _, r := range h.Received() {
			text := fmt.Sprintf("type %d", r.Type)
			switch {
			case r.Opaque:
				text = "sealed"
			case r.Type == tlstest.TypeAlert || r.Type == tlstest.TypeHandshake:
				text += fmt.Sprintf(" %x", r.Payload)
			}
			sent = append(sent, text)
		}
		fields["Sent"] = fmt.Sprint(sent)
		return fields, err
	}
	want, werr := run(tlstest.Std)
	got, gerr := run(ossltest.UnderTest)
	explain := func() string { return fmt.Sprintf("error: %v\ncrypto/tls's: %v", gerr, werr) }
	for _, field := range []string{"Heard", "Talk", "Again", "Write", "Sent"} {
		same(t, victim, field, want[field], got[field], explain)
	}
}

// TestDifferentialSealedAlerts sends every alert after the handshake.
func TestDifferentialSealedAlerts(t *testing.T) {
	defer checkStale(t)
	for _, version := range tlstest.Versions {
		for _, victim := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			for _, level := range []byte{0, 1, 2, 3} {
				for _, a := range alerts {
					if (level == 0 || level == 3) && a != 0 && a != 40 && a != 90 && a != 200 {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/level %d/%d", tlstest.VersionName(version), victim, level, a), func(t *testing.T) {
						hijacked(t, version, victim, func(h *tlstest.Hijacked) {
							h.Send(tlstest.TypeApplicationData, []byte("before"))
							h.Send(tlstest.TypeAlert, []byte{level, a})
							h.Send(tlstest.TypeApplicationData, []byte("after"))
						})
					})
				}
			}
		}
	}
}

// repeated does something n times.
func repeated(n int, do func(*tlstest.Hijacked)) func(*tlstest.Hijacked) {
	return func(h *tlstest.Hijacked) {
		for range n {
			do(h)
		}
	}
}

func sending(typ byte, payload string) func(*tlstest.Hijacked) {
	return func(h *tlstest.Hijacked) { h.Send(typ, []byte(payload)) }
}

func keyUpdate(request string) func(*tlstest.Hijacked) {
	return func(h *tlstest.Hijacked) {
		h.Send(tlstest.TypeHandshake, []byte("\x18\x00\x00\x01"+request))
		h.Rekey()
	}
}

func both(first, second func(*tlstest.Hijacked)) func(*tlstest.Hijacked) {
	return func(h *tlstest.Hijacked) { first(h); second(h) }
}

var (
	saying    = sending(tlstest.TypeApplicationData, "data")
	closing   = sending(tlstest.TypeAlert, "\x01\x00")
	maxRecord = string(make([]byte, 1<<14))
)

// afters are for both versions, afters13 for TLS 1.3 only. After each come data and
// close_notify.
var afters = []after{
	{"close_notify", func(*tlstest.Hijacked) {}},
	{"largest record", sending(tlstest.TypeApplicationData, maxRecord)},
	{"record one byte too large", sending(tlstest.TypeApplicationData, maxRecord+"x")},
	{"record much too large", sending(tlstest.TypeApplicationData, maxRecord+maxRecord[:2000])},
	{"empty record", sending(tlstest.TypeApplicationData, "")},
	{"15 empty records", repeated(15, sending(tlstest.TypeApplicationData, ""))},
	{"40 empty records", repeated(40, sending(tlstest.TypeApplicationData, ""))},
	{"empty records with data between", repeated(20, both(saying, sending(tlstest.TypeApplicationData, "")))},
	{"empty handshake record", sending(tlstest.TypeHandshake, "")},
	{"empty alert", sending(tlstest.TypeAlert, "")},
	{"short alert", sending(tlstest.TypeAlert, "\x02")},
	{"long alert", sending(tlstest.TypeAlert, "\x02\x28\x00")},
	{"two alerts in a record", sending(tlstest.TypeAlert, "\x01\x5a\x02\x28")},
	{"one warning", sending(tlstest.TypeAlert, "\x01\x5a")},
	{"40 warnings", repeated(40, sending(tlstest.TypeAlert, "\x01\x5a"))},
	{"unknown type", sending(99, "what")},
	{"type 0", sending(0, "what")},
	{"ChangeCipherSpec", sending(tlstest.TypeChangeCipherSpec, "\x01")},
	{"HelloRequest", sending(tlstest.TypeHandshake, "\x00\x00\x00\x00")},
	{"40 HelloRequests", repeated(40, sending(tlstest.TypeHandshake, "\x00\x00\x00\x00"))},
	{"ClientHello", sending(tlstest.TypeHandshake, "\x01\x00\x00\x00")},
	{"ServerHello", sending(tlstest.TypeHandshake, "\x02\x00\x00\x00")},
	{"Finished", sending(tlstest.TypeHandshake, "\x14\x00\x00\x0c123456789012")},
	{"unknown message", sending(tlstest.TypeHandshake, "\x63\x00\x00\x00")},
	{"huge message", sending(tlstest.TypeHandshake, "\x04\xff\xff\xff\x00")},
	{"garbled record", func(h *tlstest.Hijacked) {
		b := h.Seal(tlstest.TypeApplicationData, []byte("data"))
		b[len(b)-1] ^= 1
		h.SendRaw(b)
	}},
	{"record twice", func(h *tlstest.Hijacked) {
		b := h.Seal(tlstest.TypeApplicationData, []byte("data"))
		h.SendRaw(b)
		h.SendRaw(b)
	}},
	{"record missing", func(h *tlstest.Hijacked) { h.Seal(tlstest.TypeApplicationData, []byte("data")) }},
	{"records exchanged", func(h *tlstest.Hijacked) {
		a, b := h.Seal(tlstest.TypeApplicationData, []byte("a")), h.Seal(tlstest.TypeApplicationData, []byte("b"))
		h.SendRaw(b)
		h.SendRaw(a)
	}},
	{"record in the clear", func(h *tlstest.Hijacked) { h.SendRaw(record(23, "data")) }},
	{"long record in the clear", func(h *tlstest.Hijacked) { h.SendRaw(record(23, string(make([]byte, 100)))) }},
	{"alert in the clear", func(h *tlstest.Hijacked) { h.SendRaw(record(21, "\x02\x28")) }},
	{"close_notify in the clear", func(h *tlstest.Hijacked) { h.SendRaw(record(21, "\x01\x00")) }},
	{"ChangeCipherSpec in the clear", func(h *tlstest.Hijacked) { h.SendRaw(record(20, "\x01")) }},
	{"handshake in the clear", func(h *tlstest.Hijacked) { h.SendRaw(record(22, "\x00\x00\x00\x00")) }},
	{"HTTP in the clear", func(h *tlstest.Hijacked) { h.SendRaw([]byte("GET / HTTP/1.1\r\n\r\n")) }},
	{"other version", func(h *tlstest.Hijacked) {
		b := h.Seal(tlstest.TypeApplicationData, []byte("data"))
		b[2] = 1
		h.SendRaw(b)
	}},
	{"other major version", func(h *tlstest.Hijacked) {
		b := h.Seal(tlstest.TypeApplicationData, []byte("data"))
		b[1] = 7
		h.SendRaw(b)
	}},
	{"length over all limits", func(h *tlstest.Hijacked) { h.SendRaw([]byte{23, 3, 3, 0xff, 0xff, 1, 2, 3}) }},
	{"end without close_notify", func(h *tlstest.Hijacked) { saying(h); h.End() }},
	{"end inside of a header", func(h *tlstest.Hijacked) { h.SendRaw([]byte{23, 3}); h.End() }},
	{"end inside of a record", func(h *tlstest.Hijacked) {
		b := h.Seal(tlstest.TypeApplicationData, []byte("data"))
		h.SendRaw(b[:len(b)-1])
		h.End()
	}},
}

var afters13 = []after{
	{"KeyUpdate", keyUpdate("\x00")},
	{"KeyUpdate requested", keyUpdate("\x01")},
	{"KeyUpdates with data between", repeated(40, both(keyUpdate("\x01"), saying))},
	{"15 KeyUpdates", repeated(15, keyUpdate("\x00"))},
	{"15 KeyUpdates requested", repeated(15, keyUpdate("\x01"))},
	{"40 KeyUpdates", repeated(40, keyUpdate("\x00"))},
	{"KeyUpdate of an unknown kind", keyUpdate("\x02")},
	{"KeyUpdate too long", sending(tlstest.TypeHandshake, "\x18\x00\x00\x02\x00\x00")},
	{"KeyUpdate too short", sending(tlstest.TypeHandshake, "\x18\x00\x00\x00")},
	{"KeyUpdate and data under the old key", sending(tlstest.TypeHandshake, "\x18\x00\x00\x01\x00")},
	{"KeyUpdate with a message behind it", sending(tlstest.TypeHandshake, "\x18\x00\x00\x01\x00\x18\x00\x00\x01\x00")},
	{"KeyUpdate in two records", func(h *tlstest.Hijacked) {
		h.Send(tlstest.TypeHandshake, []byte("\x18\x00"))
		h.Send(tlstest.TypeHandshake, []byte("\x00\x01\x00"))
		h.Rekey()
	}},
	{"data inside of a message", func(h *tlstest.Hijacked) { h.Send(tlstest.TypeHandshake, []byte("\x18\x00")); saying(h) }},
	{"NewSessionTicket", sending(tlstest.TypeHandshake, "\x04\x00\x00\x13"+"\x00\x00\x1c\x20"+"\x01\x02\x03\x04"+
		"\x01\x07"+"\x00\x05"+"hello"+"\x00\x00")},
	{"40 NewSessionTickets", repeated(40, sending(tlstest.TypeHandshake, "\x04\x00\x00\x13"+"\x00\x00\x1c\x20"+
		"\x01\x02\x03\x04"+"\x01\x07"+"\x00\x05"+"hello"+"\x00\x00"))},
	{"40 NewSessionTickets in a record", sending(tlstest.TypeHandshake, strings.Repeat("\x04\x00\x00\x13"+"\x00\x00\x1c\x20"+
		"\x01\x02\x03\x04"+"\x01\x07"+"\x00\x05"+"hello"+"\x00\x00", 40))},
	{"20 NewSessionTickets and 20 KeyUpdates", repeated(20, both(sending(tlstest.TypeHandshake, "\x04\x00\x00\x13"+
		"\x00\x00\x1c\x20"+"\x01\x02\x03\x04"+"\x01\x07"+"\x00\x05"+"hello"+"\x00\x00"), keyUpdate("\x00")))},
	{"truncated NewSessionTicket", sending(tlstest.TypeHandshake, "\x04\x00\x00\x02\x00\x00")},
	{"CertificateRequest", sending(tlstest.TypeHandshake, "\x0d\x00\x00\x0b\x00\x00\x08\x00\x0d\x00\x04\x00\x02\x04\x03")},
	{"padded data", func(h *tlstest.Hijacked) { h.SendRaw(h.SealPadded(tlstest.TypeApplicationData, []byte("data"), 1000)) }},
	{"padding up to the limit", func(h *tlstest.Hijacked) {
		h.SendRaw(h.SealPadded(tlstest.TypeApplicationData, []byte("data"), 1<<14-4))
	}},
	{"padding over the limit", func(h *tlstest.Hijacked) {
		h.SendRaw(h.SealPadded(tlstest.TypeApplicationData, []byte("data"), 1<<14-3))
	}},
	{"padding up to a record's end", func(h *tlstest.Hijacked) { // 2^14+240 bytes, and the tag
		h.SendRaw(h.SealPadded(tlstest.TypeApplicationData, []byte("data"), 1<<14+240-5))
	}},
	{"padding beyond a record's end", func(h *tlstest.Hijacked) {
		h.SendRaw(h.SealPadded(tlstest.TypeApplicationData, []byte("data"), 1<<14+241-5))
	}},
	{"largest record with padding", func(h *tlstest.Hijacked) {
		h.SendRaw(h.SealPadded(tlstest.TypeApplicationData, []byte(maxRecord), 239))
	}},
	{"padding only", func(h *tlstest.Hijacked) { h.SendRaw(h.SealPadded(0, nil, 10)) }},
	{"outer type is alert", func(h *tlstest.Hijacked) {
		b := h.Seal(tlstest.TypeApplicationData, []byte("data"))
		b[0] = 21
		h.SendRaw(b)
	}},
}

// TestDifferentialAfterHandshake compares the outcome of unusual and wrong records on an open
// connection.
func TestDifferentialAfterHandshake(t *testing.T) {
	defer checkStale(t)
	for _, version := range tlstest.Versions {
		for _, victim := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			list := afters
			if version == tls.VersionTLS13 {
				list = append(list[:len(list):len(list)], afters13...)
			}
			for _, a := range list {
				t.Run(fmt.Sprintf("%s/%s/%s", tlstest.VersionName(version), victim, a.name), func(t *testing.T) {
					hijacked(t, version, victim, func(h *tlstest.Hijacked) {
						a.do(h)
						saying(h)
						closing(h)
					})
				})
			}
		}
	}
}
